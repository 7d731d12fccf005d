"""Runs exchanged through branches of a git remote: a store without a server.

A branch holds run files and nothing else, each immutable, at a place that follows from the run
(``perfci.history.places``). So whoever pushes second puts the same files on top of what the first
one pushed, and nobody replaces anybody's. Nothing is forced, and nothing in a branch is changed or
removed. What comes from there is not trusted: it ends as a run in the store, or is reported and
left.
"""

import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

from perfci.history.codec import LARGEST_RUN_BYTES, decode, encode
from perfci.history.errors import OvertakenError, RunFileError, SyncError, UnreachableError
from perfci.history.git import ask_git
from perfci.history.listing import Listing, look, shown
from perfci.history.model import RunSummary
from perfci.history.notes import Notes
from perfci.history.places import Place, branch_of, pattern_of, year_of
from perfci.history.remote import Remote
from perfci.history.stores import Store
from perfci.history.text import one_line

Observer = Callable[[str, int, int, str], None]
"""Hears how far a sync is: the phase, how many of how many are done, and which was the last."""

_PATIENCE: dict[type[SyncError], int] = {OvertakenError: 40, UnreachableError: 4}
"""How often either is met before it is given up."""
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.2, 8.0
_FILES_A_FETCH = 100
_LARGEST_PUSH_BYTES = 64 * 2**20
_LOOKED_BACK = timedelta(days=31)

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Exchange:
    """What a sync did, mostly in ids of runs.

    ``sent`` are in a branch, since the push that took them there was acknowledged; ``received`` are
    in the store. ``refused`` says, a line each, of which runs neither is true and why; ``foreign``
    names what lies in a branch and can be no run file. ``kept_back`` are the runs of dirty trees.
    """

    sent: list[str] = field(default_factory=list)
    received: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    kept_back: list[str] = field(default_factory=list)


def first_year(now: datetime) -> int:
    """The year from which on runs are received: this one, in January the last one too."""
    return (now.astimezone(UTC) - _LOOKED_BACK).year


def require_branches(root: Path, base: str) -> None:
    """Raise SyncError where git takes no branches of which the names begin so."""
    branch = branch_of(base, 2000)
    if "\0" in base or ask_git(root, "check-ref-format", "--branch", branch).status != 0:
        raise SyncError(f"{one_line(repr(base), limit=80)} is no name for a branch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """An exchange between a store and those of a remote's branches whose names begin with ``base``.

    ``since`` is the first year that is received; ``wait`` sleeps for seconds.
    """

    store: Store
    remote: Remote
    base: str
    since: int
    notes: Notes
    sends: bool = True
    receives: bool = True
    observe: Observer
    wait: Callable[[float], None] = time.sleep

    def run(self) -> Exchange:
        """Send and receive, year by year. Raises SyncError, or StoreError where the store fails.

        What was sent or received until then stays so, and a further sync goes on from there.
        """
        exchange = Exchange()
        runs = self.store.runs()
        known = {each.run_id for each in runs}
        to_send = self._to_send(runs) if self.sends else {}
        if self.sends:
            exchange.kept_back += [each.run_id for each in runs if each.commit.dirty is not None]
        try:
            for year in sorted({*to_send, *self._years_there()}):
                branch = branch_of(self.base, year)
                listing = self._send(branch, to_send.get(year, []), exchange)
                exchange.foreign += [shown(branch, each) for each in sorted(listing.foreign)]
                files = listing.files
                if not (self.receives and year >= self.since):
                    files = {each: sha for each, sha in files.items() if each.run_id in known}
                self._receive(branch, files, known, exchange)
        finally:
            self.notes.save()
        return exchange

    def _to_send(self, runs: Iterable[RunSummary]) -> dict[int, list[Place]]:
        """The places of clean runs by year; of earlier years only what is not known to be there."""
        found: dict[int, list[Place]] = {}
        for each in runs:
            place = Place.of(each.run_id, each.started_at)
            if each.commit.dirty is None and (
                place.year >= self.since or self.notes.sha(place.path) is None
            ):
                found.setdefault(place.year, []).append(place)
        return found

    def _years_there(self) -> list[int]:
        """The years of the branches that are received."""
        if not self.receives:
            return []
        names = self._persist(lambda: self.remote.branches(pattern_of(self.base)))
        years = [year_of(self.base, each) for each in names]
        return [each for each in years if each is not None and each >= self.since]

    def _send(self, branch: str, places: Sequence[Place], exchange: Exchange) -> Listing:
        """Send the runs that a branch lacks; what lay in it before the last push."""
        patience = _Patience(self.wait)
        waiting = list(places)
        offered: dict[Place, bytes] = {}
        while True:
            listing = self._persist(lambda: look(self.remote, self.base, branch))
            # A push may have gone through although its answer was lost.
            for place, blob in offered.items():
                if listing.files.get(place) == self.remote.blob_sha(blob):
                    self._acknowledge(place, blob, exchange)
            waiting = [each for each in waiting if not listing.holds(each)]
            if not waiting:
                break
            offered = self._encoded(waiting, offered)
            try:
                files = {place.path: blob for place, blob in offered.items()}
                self.remote.push(branch, listing.tip, files)
            except (OvertakenError, UnreachableError) as error:
                patience.endure(error)
                continue
            for place, blob in offered.items():
                self._acknowledge(place, blob, exchange)
            waiting = [each for each in waiting if each not in offered]
            offered, patience = {}, _Patience(self.wait)
            if not waiting:
                break
        exchange.refused += [
            f"{shown(branch, each.path)}: something else lies there; remove it to send that run"
            for each in places
            if listing.blocks(each)
        ]
        return listing

    def _encoded(self, places: Sequence[Place], known: Mapping[Place, bytes]) -> dict[Place, bytes]:
        """The files of as many runs as one push takes, at least one."""
        found: dict[Place, bytes] = {}
        size_bytes = 0
        for index, place in enumerate(places):
            blob = known.get(place) or encode(self.store.run(place.run_id))
            size_bytes += len(blob)
            if found and size_bytes > _LARGEST_PUSH_BYTES:
                break
            found[place] = blob
            self.observe("send", index + 1, len(places), place.run_id)
        return found

    def _acknowledge(self, place: Place, blob: bytes, exchange: Exchange) -> None:
        exchange.sent.append(place.run_id)
        self.notes.add(place.path, self.remote.blob_sha(blob))

    def _receive(
        self, branch: str, files: Mapping[Place, str], known: Collection[str], exchange: Exchange
    ) -> None:
        """Read the files that are not known to be runs of the store, and add what is new."""
        unread = {
            each: sha
            for each, sha in files.items()
            if each.run_id not in known or self.notes.sha(each.path) != sha
        }
        shared = sorted(each for each in unread if each.run_id in known)
        for index, place in enumerate(shared):
            sha = self.remote.blob_sha(encode(self.store.run(place.run_id)))
            if unread[place] == sha:
                self.notes.add(place.path, sha)
                del unread[place]
            self.observe("compare", index + 1, len(shared), place.run_id)
        places = sorted(unread)
        for start in range(0, len(places), _FILES_A_FETCH):
            chunk = places[start : start + _FILES_A_FETCH]
            shas = [unread[each] for each in chunk]
            sizes_bytes = self._persist(partial(self.remote.bring, shas))
            for index, (place, sha) in enumerate(zip(chunk, shas, strict=True), start + 1):
                try:
                    if self._take(shown(branch, place.path), place, sha, sizes_bytes.get(sha)):
                        exchange.received.append(place.run_id)
                except RunFileError as error:
                    exchange.refused.append(str(error))
                self.observe("receive", index, len(places), place.run_id)

    def _take(self, origin: str, place: Place, sha: str, size_bytes: int | None) -> bool:
        """Whether the run of a file is new, and now in the store. RunFileError where it cannot be.

        ``size_bytes`` is None where the remote did not send the file.
        """
        if size_bytes is None:
            raise RunFileError(f"{origin}: the remote does not have its contents: left")
        if size_bytes > LARGEST_RUN_BYTES:
            raise RunFileError(f"{origin}: {size_bytes} bytes are more than a run has: not read")
        run = decode(self.remote.read(sha), origin=origin)
        belongs = Place.of(run.run_id, run.started_at)
        if belongs != place:
            raise RunFileError(f"{origin}: holds a run that belongs at {belongs.path}: left")
        is_new = self.store.add(run)
        if not is_new and self.store.run(run.run_id) != run:
            raise RunFileError(f"{origin}: {self.store.url} has another run of this id; both stay")
        self.notes.add(place.path, sha)
        return is_new

    def _persist(self, reach: Callable[[], T]) -> T:
        """What a step says that needs the remote, which is tried again where it does not answer."""
        patience = _Patience(self.wait)
        while True:
            try:
                return reach()
            except UnreachableError as error:
                patience.endure(error)


class _Patience:
    """How often what may pass has been met, each time with a longer wait, and a random one."""

    def __init__(self, wait: Callable[[float], None]) -> None:
        self._wait = wait
        self._met: Counter[type[SyncError]] = Counter()

    def endure(self, error: SyncError) -> None:
        """Wait, or raise the error where it has been met often enough."""
        self._met[type(error)] += 1
        if self._met[type(error)] >= _PATIENCE[type(error)]:
            raise error
        longest_s = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2 ** self._met.total())
        self._wait(random.uniform(0, longest_s))  # noqa: S311 - keeps others apart
