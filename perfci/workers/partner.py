"""The other side of a cell where that is another process: turns are taken, and given away."""

import contextlib
import os
from collections.abc import Callable

from perfci.collector import uncollected
from perfci.history.model import Contract, Status
from perfci.outcome import Timing
from perfci.timers import Reader
from perfci.timers.sampling import SCARCE_SAMPLES, Series, warm_up
from perfci.workers.turns import Heard, Said, decode_heard, encode_said


class PartnerEndedError(Exception):
    """The other side has ended without figures, so that there is nothing to be timed beside."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.value)
        self.status = status


class PartnerInvalidError(Exception):
    """The other side cannot be read by this timer, for the reason that it gave."""


class Partner:
    """The process of the other side, as this one sees it.

    ``settle`` waits for the device. Nothing is done here between giving the turn away and getting
    it again; then everything that was begun has ended.
    """

    def __init__(self, messages: int, heard: int, settle: Callable[[], None]) -> None:
        self._messages = messages
        self._heard = open(heard, "rb", buffering=0, closefd=False)  # noqa: SIM115
        self._settle = settle
        self._task = -1
        self._in_blocks = False

    def begin(self, task: int) -> None:
        """Wait for the first turn at a task."""
        self._task, self._in_blocks = task, False
        with contextlib.suppress(PartnerEndedError):  # this side is checked all the same
            self._wait()

    def agree(self, invalid: str = "") -> None:
        """End a step; the other side does the same before this goes on.

        ``invalid`` is why this side cannot be read. Raises PartnerEndedError, and
        PartnerInvalidError where the other side cannot.
        """
        heard = self._give_away(Said(invalid=invalid))
        if heard.invalid:
            raise PartnerInvalidError(heard.invalid)

    def refuse(self, invalid: str) -> None:
        """Say that this side cannot be read by a timer, wherever it is with it."""
        if self._in_blocks:
            self._in_blocks = False
            self._give_away(Said(block=True, invalid=invalid))
        else:
            self._give_away(Said(invalid=invalid))

    def measure(self, reader: Reader, *, contract: Contract, budget_s: float) -> Timing:
        """Warm up this side's reader, and read it in turns with the other's.

        Raises what reading does, PartnerEndedError and PartnerInvalidError.
        """
        with uncollected():
            warm_up(reader, budget_s=budget_s)
            self.agree()
            series = Series(reader)
            self._in_blocks = True
            while True:
                # A call first, since the other side has left the caches as it needs them.
                reader.call()
                series.samples.extend(reader.read())
                heard = self._give_away(
                    Said(
                        block=True,
                        enough=series.is_enough(),
                        few=len(series.samples) >= SCARCE_SAMPLES,
                    )
                )
                if heard.stop:
                    break
            self._in_blocks = False
        if heard.invalid:
            raise PartnerInvalidError(heard.invalid)
        return Timing(
            contract=contract,
            samples_ns=tuple(series.samples),
            loops=reader.loops,
            stop=series.stop or series.stop_now(),
            note=reader.note,
        )

    def _give_away(self, said: Said) -> Heard:
        self._settle()
        os.write(self._messages, encode_said(said, self._task))
        return self._wait()

    def _wait(self) -> Heard:
        line = self._heard.readline()
        if not line:
            os._exit(0)  # nobody waits for this process any more
        heard = decode_heard(line)
        if heard.ended is not None:
            raise PartnerEndedError(heard.ended)
        return heard
