"""What is to be done about an event, between which commits, on which runners, and why.

A pull request is planned by its base's settings: its own could name another label to approve it.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from perfci.ci import clone
from perfci.ci.act import Act
from perfci.ci.admission import admit
from perfci.ci.change import find_changed, find_touched
from perfci.ci.event import Event, Kind, PullRequest
from perfci.config import Config, config_of_text
from perfci.errors import UsageError
from perfci.history import commits, midpoints
from perfci.history.errors import CommitError
from perfci.history.git import ask_git
from perfci.history.text import one_line
from perfci.suggest import did_you_mean
from perfci.units import count_things

_INPUTS = ("act", "range", "runner", "kernel", "variant", "case", "timer")
_CELL = ("kernel", "variant", "case")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do. SHAs are full ones.

    ``base`` is what a gate judges by, what a range begins after, the good end of a bisection, and
    of a run what was measured before it. ``runners`` are those that have to report. ``options``
    name the cell of a bisection. ``is_admitted`` is False where nothing is done since nobody has
    approved it: then nothing is known, and nothing is green.
    """

    act: Act
    reason: str
    head: str | None
    base: str | None = None
    runners: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    is_admitted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """The repository, and the settings that count."""

    root: Path
    config: Config

    def inside(self, path: Path) -> str:
        """A folder from the top of the repository; one that is outside matches nothing."""
        try:
            return path.relative_to(self.root).as_posix()
        except ValueError:
            return "/"


def make_plan(event: Event, root: Path, config: Config) -> Plan:
    """What to do about an event in the repository at ``root``, a clone that may be shallow.

    Raises CommitError where commits are not there and cannot be fetched, or have no common
    ancestor; UsageError where what was filled in cannot be meant; ConfigurationError.
    """
    plan = _PLANNERS[event.kind](event, _Place(root=root, config=config))
    if plan.act is Act.NOTHING or plan.runners:
        return plan
    return replace(plan, runners=config.ci.runners)


def output_values(plan: Plan, *, attempt: int) -> dict[str, str]:
    """A plan as outputs of a step for the jobs that follow; ``runners`` are a matrix in JSON."""
    return {
        "act": str(plan.act),
        "base": plan.base or "",
        "head": plan.head or "",
        "runners": json.dumps(plan.runners),
        "admitted": str(plan.is_admitted).lower(),
        "attempt": str(attempt),
        "reason": one_line(plan.reason),
    }


def as_filled_in(event: Event, inputs: Mapping[str, str]) -> Event:
    """The event as if it were asked for by hand. Raises UsageError of a pull request.

    What is asked of a pull request's commits is for its approval to decide.
    """
    if not inputs:
        return event
    if event.pull_request is not None or event.head is None:
        raise UsageError(f"--input does not go with a {event.kind} event")
    try:
        return replace(event, kind=Kind.DISPATCH, base=None, inputs=tuple(inputs.items()))
    except ValueError as error:
        raise UsageError(f"--input: {error}") from None


def _nothing(reason: str) -> Callable[[Event, _Place], Plan]:
    return lambda event, _place: Plan(act=Act.NOTHING, reason=reason, head=event.head)


def _of_push(event: Event, place: _Place) -> Plan:
    head = _head(event, place)
    if not event.is_default_branch:
        branch = one_line(event.branch or event.ref, limit=100)
        reason = f"{branch} is not {event.default_branch}: its pull request is what is measured"
        return Plan(act=Act.NOTHING, reason=reason, head=head)
    base, reason = _what_was_before(event, place)
    return Plan(act=Act.RUN, reason=reason, head=head, base=base)


def _what_was_before(event: Event, place: _Place) -> tuple[str | None, str]:
    """The commit that a branch was at before a push, where what is there now builds on it."""
    head, before, branch = event.head or "", event.base, event.default_branch
    if before is None:
        return None, f"{branch} is new: there is nothing before it"
    forced = f"{branch} was forced: {before[:10]}, where it was, is no ancestor"
    if event.is_forced:
        return None, forced
    try:
        clone.ask_deepened(
            place.root,
            [before, head],
            lambda: midpoints.require_ancestor(place.root, before, head),
        )
    except CommitError as error:
        if not clone.has_commit(place.root, before) or commits.is_shallow(place.root):
            return None, f"what {branch} was before is not known: {error}"
        return None, forced
    return before, f"a push to {branch}, which was at {before[:10]}"


def _of_tag(event: Event, place: _Place) -> Plan:
    tag = one_line(event.ref.removeprefix("refs/tags/"), limit=100)
    return Plan(act=Act.RUN, reason=f"tag {tag}", head=_head(event, place))


def _of_pull_request(event: Event, place: _Place) -> Plan:
    request = event.pull_request
    assert request is not None
    if request.action == "closed":
        return Plan(act=Act.NOTHING, reason="the pull request is closed", head=event.head)
    head = _head(event, place)
    base = _base_of(event, request, place)
    if base == head:
        branch = one_line(request.base_branch, limit=100)
        return Plan(act=Act.NOTHING, reason=f"{branch} has all of it already", head=head)
    place = replace(place, config=_settings_at(place, base))
    settings = place.config.ci
    plan = _gate_if_touched(head, base, place, is_asked=settings.gate_label in request.labels)
    if plan.act is Act.NOTHING:
        return plan
    admission = admit(event, label=settings.approval_label)
    if not admission.is_admitted:
        return replace(
            plan, act=Act.NOTHING, reason=admission.reason, runners=(), is_admitted=False
        )
    return replace(plan, runners=settings.runners)


def _base_of(event: Event, request: PullRequest, place: _Place) -> str:
    """Where a pull request left the branch that it is for.

    What the event says of that branch may be old, so that it is looked at as it is now; only where
    it has taken all of the request in meanwhile does the event say where it was.
    """
    head, said = event.head or "", event.base
    try:
        tip = clone.fetch_tip(place.root, request.base_branch)
    except CommitError:
        if said is None:
            raise
        tip = said
    base = _merge_base(place.root, head, tip)
    return _merge_base(place.root, head, said) if base == head and said not in (None, tip) else base


def _merge_base(root: Path, head: str, other: str | None) -> str:
    other = other or ""
    return clone.ask_deepened(root, [head, other], lambda: commits.merge_base(root, head, other))


def _of_merge_group(event: Event, place: _Place) -> Plan:
    head = _head(event, place)
    base = _merge_base(place.root, head, event.base)
    return _gate_if_touched(head, base, place, is_asked=False)


def _gate_if_touched(head: str, base: str, place: _Place, *, is_asked: bool) -> Plan:
    """A gate where a change touches what is measured, or where one is asked for by label."""
    touched = find_touched(
        find_changed(place.root, base, head),
        kernels=place.inside(place.config.kernels),
        project=place.inside(place.config.root),
        named=place.config.environment,
    )
    label = place.config.ci.gate_label
    if touched is not None:
        reason = f"{one_line(touched, limit=100)} is touched"
    elif is_asked:
        reason = f"the label '{label}' asks for it"
    else:
        reason = (
            f"no kernel, environment or setting is touched; the label '{label}' asks for a gate"
        )
        return Plan(act=Act.NOTHING, reason=reason, head=head, base=base)
    return Plan(act=Act.GATE, reason=reason, head=head, base=base)


def _settings_at(place: _Place, sha: str) -> Config:
    """The settings of another commit."""
    config = place.config
    inside = place.inside(config.root)
    path = "pyproject.toml" if inside == "." else f"{inside}/pyproject.toml"
    found = ask_git(place.root, "cat-file", "blob", f"{sha}:{path}")
    text = found.output if found.status == 0 else ""
    return config_of_text(config.root, text, f"{path} of {sha[:10]}")


def _of_schedule(event: Event, place: _Place) -> Plan:
    return Plan(act=Act.NIGHTLY, reason="a schedule", head=_head(event, place))


def _of_dispatch(event: Event, place: _Place) -> Plan:
    for name, _ in event.inputs:
        if name not in _INPUTS:
            raise UsageError(f"input {name!r} is unknown {did_you_mean(name, _INPUTS)}")
    asked = event.asked("act") or Act.RUN
    if asked not in _ASKED:
        shown = one_line(asked, limit=60)
        raise UsageError(f"input act = '{shown}' is unknown {did_you_mean(shown, _ASKED)}")
    plan = _ASKED[asked](event, place)
    runner, known = event.asked("runner"), place.config.ci.runners
    if runner and runner not in known:
        shown = one_line(runner, limit=60)
        raise UsageError(f"input runner = '{shown}' is none here {did_you_mean(shown, known)}")
    return replace(plan, runners=(runner,)) if runner else plan


def _simply(act: Act) -> Callable[[Event, _Place], Plan]:
    return lambda event, place: Plan(act=act, reason="asked for", head=_head(event, place))


def _asked_gate(event: Event, place: _Place) -> Plan:
    head = _head(event, place)
    if event.asked("range"):
        first, head = _ends(event, place)
    else:
        first = clone.fetch_tip(place.root, event.default_branch)
    base = _merge_base(place.root, head, first)
    if base == head:
        raise UsageError(
            f"{head[:10]} is on {event.default_branch} already: fill in range = BASE..HEAD"
        )
    return Plan(act=Act.GATE, reason="asked for", head=head, base=base)


def _asked_backfill(event: Event, place: _Place) -> Plan:
    base, head = _ends(event, place)
    span = clone.ask_deepened(
        place.root, [base, head], lambda: commits.commit_range(place.root, f"{base}..{head}")
    )
    if not span:
        raise UsageError("input range holds no commit: write A..B, the older commit first")
    reason = f"{count_things(len(span), 'commit')} asked for"
    return Plan(act=Act.BACKFILL, reason=reason, head=head, base=base)


def _asked_bisect(event: Event, place: _Place) -> Plan:
    base, head = _ends(event, place)
    clone.ask_deepened(
        place.root, [base, head], lambda: midpoints.require_ancestor(place.root, base, head)
    )
    options = tuple((name, event.asked(name)) for name in (*_CELL, "timer") if event.asked(name))
    for name, value in options:
        if not _NAME.fullmatch(value):
            raise UsageError(f"input {name} = '{one_line(value, limit=60)}' is no name")
    lacking = [name for name in _CELL if name not in dict(options)]
    if lacking:
        raise UsageError(f"a bisection is of one cell: fill in {', '.join(lacking)}")
    runners = place.config.ci.runners[:1]
    return Plan(
        act=Act.BISECT, reason="asked for", head=head, base=base, runners=runners, options=options
    )


def _ends(event: Event, place: _Place) -> tuple[str, str]:
    """The two commits that a range names."""
    text = event.asked("range")
    first, dots, last = text.partition("..")
    if not (first and dots and last) or last.startswith("."):
        shown = one_line(text, limit=60)
        raise UsageError(f"input range = '{shown}': write A..B, the older commit first")
    return _find(first, event, place), _find(last, event, place)


def _find(name: str, event: Event, place: _Place) -> str:
    """The commit that a name means; a clone that is shallow is deepened until it has it."""
    tips = [event.head] if event.head else []
    return clone.ask_deepened(place.root, tips, lambda: commits.resolve(place.root, name))


def _head(event: Event, place: _Place) -> str:
    """The event's commit, brought into the clone."""
    assert event.head is not None
    clone.fetch_commit(place.root, event.head)
    return commits.resolve(place.root, event.head)


_PLANNERS: Mapping[Kind, Callable[[Event, _Place], Plan]] = {
    Kind.PUSH: _of_push,
    Kind.TAG: _of_tag,
    Kind.DELETION: _nothing("a branch or tag was deleted"),
    Kind.PULL_REQUEST: _of_pull_request,
    Kind.MERGE_GROUP: _of_merge_group,
    Kind.SCHEDULE: _of_schedule,
    Kind.DISPATCH: _of_dispatch,
    Kind.WORKFLOW_RUN: _nothing("it tells of another run"),
}
_ASKED: Mapping[str, Callable[[Event, _Place], Plan]] = {
    Act.RUN: _simply(Act.RUN),
    Act.GATE: _asked_gate,
    Act.NIGHTLY: _simply(Act.NIGHTLY),
    Act.BACKFILL: _asked_backfill,
    Act.BISECT: _asked_bisect,
    Act.SELFTEST: _simply(Act.SELFTEST),
}
