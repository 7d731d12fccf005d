"""How often something that takes time is done beside what time is there for."""

import math
import time
from collections.abc import Callable


class Sparingly:
    """Does something when it is called, unless that would take more than a share of the time.

    What took a second is done again a hundred seconds later at the earliest, for a share of 1 %;
    the first time it is done in any case.
    """

    def __init__(
        self, do: Callable[[], None], *, share: float, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._do = do
        self._share = share
        self._now_s = now_s
        self._next_s = -math.inf

    def __call__(self) -> None:
        """Do it, or leave it for another time."""
        start_s = self._now_s()
        if start_s < self._next_s:
            return
        self._do()
        end_s = self._now_s()
        self._next_s = end_s + (end_s - start_s) / self._share
