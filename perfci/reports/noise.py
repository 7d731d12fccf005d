"""A study of noise as lines for a terminal, at most 80 wide: a table a kernel and contract."""

import math
from collections.abc import Sequence

from perfci import units
from perfci.decision.noise import ENOUGH_PASSES, LADDER, CellNoise, Study
from perfci.history.model import Cell, is_anchor
from perfci.load import say_load
from perfci.reports.columns import Column, lay_out, wrap
from perfci.reports.text import head, list_failures, name_commit, note

_COLUMNS = (
    Column("variant", names=True),
    Column("case", shrinks=True),
    Column("apart", align="right"),
    Column("paired", align="right"),
    *(Column(str(passes), align="right") for passes in LADDER),
)


def noise_table(
    study: Study, noise: Sequence[CellNoise], cells: Sequence[Cell], *, threshold: float
) -> list[str]:
    """Write a study: what it is, a table for each kernel and contract, failures, what it says."""
    run, environment = study[0], study[0].environment
    started, took = units.format_date(run.started_at), units.format_duration(run.duration_s)
    passes = max((len(each.latency.pass_means_ns) for each in cells if each.latency), default=0)
    lines = [
        head("noise", units.count_things(passes, "pass", "passes"), started, took),
        head(f"runs {' and '.join(each.run_id for each in study)}"),
        head(f"commit {name_commit(run.commit)}", run.commit.subject),
        head(f"testbed {environment.testbed}", environment.device.model),
        "",
    ]
    groups: dict[str, list[CellNoise]] = {}
    for each in sorted(noise, key=lambda each: is_anchor(each.key.kernel)):
        groups.setdefault(head(each.key.kernel, each.key.contract), []).append(each)
    for heading, group in groups.items():
        lines += [heading, *lay_out(_COLUMNS, [_write(each) for each in group]), ""]
    if not groups:
        lines += [*lay_out(_COLUMNS, []), ""]
    lines += list_failures(cells)
    lines += note(say_load({"": cells}))
    lines += note(say_shortage(noise))
    family = sum(not is_anchor(each.key.kernel) for each in noise)
    return [*lines, *wrap(_explain(family, threshold), indent=0)]


def say_shortage(noise: Sequence[CellNoise]) -> str:
    """Say in a sentence that a study has too few passes for what it says; empty where it has not.

    The relative standard error of a spread follows from its degrees of freedom, for normal passes.
    """
    short = [each for each in noise if each.passes < ENOUGH_PASSES]
    if not short:
        return ""
    least = min(short, key=lambda each: each.floor.paired.degrees)
    error = units.format_share(1.0 / math.sqrt(2.0 * least.floor.paired.degrees))
    of = "" if len(short) == len(noise) else f" of {len(short)} of {len(noise)} cells"
    return (
        f"Too few passes{of}: {units.format_count(least.passes)} know a spread to some {error}, "
        f"and what more paired passes would call no better. perfci noise takes {ENOUGH_PASSES} "
        "unless told otherwise."
    )


def _write(noise: CellNoise) -> tuple[str, ...]:
    return (
        noise.key.variant,
        noise.key.case,
        units.format_spread(noise.floor.unpaired.value),
        units.format_spread(noise.floor.paired.value),
        *(units.format_change(1.0 + each) for each in noise.visible),
    )


def _explain(family: int, threshold: float) -> str:
    ladder = ", ".join(map(str, LADDER[:-1]))
    return (
        f"apart: the spread of a latency from pass to pass; paired: that of the two sides' ratio "
        f"in a pass. {ladder} and {LADDER[-1]}: the least slow-down that so many paired passes "
        f"would call in 95 of 100 cases, at a threshold of {units.format_change(1 + threshold)}, "
        f"in one of {units.count_things(family, 'cell')}."
    )
