"""What became of each planted and each honest kernel: rows of one run against what is expected."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from perfci import units
from perfci.history.model import Measurement, Status
from perfci.selftest.plants import PLANTS, Plant


class Fate(StrEnum):
    """How a trial ended; the first and the third are as they should be."""

    CAUGHT = "caught"
    NOT_CAUGHT = "NOT CAUGHT"
    ACCEPTED = "accepted"
    ACCUSED = "ACCUSED"
    SKIPPED = "skipped"

    @property
    def is_failure(self) -> bool:
        """Whether perfci cannot be trusted after it."""
        return self in (Fate.NOT_CAUGHT, Fate.ACCUSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One planted (with its number) or honest kernel: its fate, and by which rule or why."""

    number: int | None
    title: str
    fate: Fate
    reason: str = ""


def try_plants(rows: Sequence[Measurement], device_kind: str) -> Iterator[Trial]:
    """The trials of the planted kernels, from the rows of a run in which they were."""
    for plant in PLANTS:
        own = [
            row
            for row in rows
            if (row.kernel, row.variant) == (plant.kernel, plant.variant)
            and row.status is not Status.SKIPPED
        ]
        if not own:
            reason = "needs a GPU" if device_kind == "cpu" else "is for a CPU"
            yield _trial(plant, Fate.SKIPPED, reason)
            continue
        caught = [row for row in own if _is_caught(plant, row)]
        if caught and (len(caught) == len(own) or not plant.everywhere):
            yield _trial(plant, Fate.CAUGHT, _rule(plant))
        else:
            missed = next(row for row in own if row not in caught)
            yield _trial(plant, Fate.NOT_CAUGHT, _tell(missed))


def try_honest(rows: Iterable[Measurement]) -> Iterator[Trial]:
    """The trials of honest kernels, one a variant."""
    by_variant: dict[str, list[Measurement]] = {}
    for row in rows:
        by_variant.setdefault(f"{row.kernel}/{row.variant}", []).append(row)
    for name, own in by_variant.items():
        failed = next((row for row in own if row.status.is_failure), None)
        passed = sum(row.status is Status.PASSED for row in own)
        if failed is not None:
            yield Trial(number=None, title=name, fate=Fate.ACCUSED, reason=_tell(failed))
        elif passed:
            reason = f"{passed} of {units.count_things(len(own), 'cell')}"
            yield Trial(number=None, title=name, fate=Fate.ACCEPTED, reason=reason)
        else:
            yield Trial(number=None, title=name, fate=Fate.SKIPPED, reason=own[0].message)


def _trial(plant: Plant, fate: Fate, reason: str) -> Trial:
    return Trial(number=plant.number, title=plant.title, fate=fate, reason=reason)


def _rule(plant: Plant) -> str:
    status = plant.status.value.replace("_", " ")
    return f"{status}: {plant.words}" if plant.words else status


def _is_caught(plant: Plant, row: Measurement) -> bool:
    timer = row.contract.timer if row.contract else None
    return (
        row.status is plant.status
        and plant.words in row.message
        and (plant.timer is None or timer == plant.timer)
    )


def _tell(row: Measurement) -> str:
    status = row.status.value.replace("_", " ")
    where = f"{row.case}, {status}"
    return f"{where}: {row.message}" if row.message else where
