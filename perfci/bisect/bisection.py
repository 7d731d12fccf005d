"""The search for the first bad commit: which one to test next, and what is left. Pure.

As git bisects: what a good commit builds on is good, what builds on a bad one is bad, and the next
to be tested is the one that parts best what is left. A commit that cannot be tested is skipped;
another one is taken then that lies away from it, since its neighbours will often be no better.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

_GOLDEN = 0.618


class Likeness(StrEnum):
    """Which end a commit is like, or that nobody can tell."""

    GOOD = "good"
    BAD = "bad"
    SKIPPED = "skipped"


Rank = Callable[[str, Sequence[str]], Sequence[str]]
"""What a bad commit has that none of some good ones has, the best to be tested first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """How far a search is. ``suspects`` are all that may be the first bad one, ``bad`` included.

    ``untested`` are those of them that are to be tested, the best first.
    """

    bad: str
    suspects: tuple[str, ...]
    untested: tuple[str, ...]

    @property
    def steps_left(self) -> int:
        """About how many more commits are to be tested."""
        return math.ceil(math.log2(len(self.untested) + 1))

    def choose(self) -> str | None:
        """The commit to be tested next; None where the search is over."""
        if not self.untested:
            return None
        skipped = len(self.suspects) - 1 - len(self.untested)
        away = (_GOLDEN * skipped) % 1.0
        return self.untested[int(len(self.untested) * away**1.5)]


def narrow(good: str, bad: str, known: Iterable[tuple[str, Likeness]], rank: Rank) -> Search:
    """What is left between a good and a bad commit by what is known, in the order it was found."""
    goods, skipped = [good], set()
    for sha, likeness in known:
        if likeness is Likeness.GOOD:
            goods.append(sha)
        elif likeness is Likeness.BAD:
            bad = sha
        else:
            skipped.add(sha)
    suspects = tuple(rank(bad, goods))
    return Search(
        bad=bad,
        suspects=suspects,
        untested=tuple(each for each in suspects if each != bad and each not in skipped),
    )
