"""What a rule of decision costs: false alarms and power, on passes that a testbed has recorded.

Each gate is drawn anew from a study of the testbed against itself (the two run files of `perfci
noise --out`), so that whatever is called is a false alarm. A family is made of copies of the
study's cells; each copy draws whole passes, with replacement, so that what a pass did to one cell
it did to the others. Floors are found from passes that are drawn likewise. Then one cell of 5 to
15 µs, drawn anew for each gate, is made slower in every pass. An alarm is a regression or an
improvement at any look; a slow-down counts as called after so many passes if it is one then.

Before that it is said how often p-values of single cells, in which nothing changed, fall below some
levels: more often than by the level would mean that noise has heavier tails than the rule allows
for. A study's cells have means of their own, however small, which 48 passes begin to see.

Without a study, passes are drawn from a model that is named as such: synthetic.

    perfci noise --passes 72 --out recorded
    python benchmarks/decisions.py recorded --rule ladder --rule unconfirmed
"""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click
import numpy as np
from scipy.special import betaincinv, stdtr, stdtrit

from perfci.decision import stats
from perfci.decision.noise import LADDER, find_studies
from perfci.decision.pairs import log_ratios
from perfci.decision.rule import LOOKS, Array, Family, Ruling, moments, rule
from perfci.errors import PerfciError, UsageError
from perfci.history.codec import read_run_file
from perfci.history.errors import HistoryError
from perfci.history.latency import TRIMMED_VARIANCE
from perfci.history.model import Commit, Measurement, Run, is_anchor
from perfci.history.summary import cell, run_summary
from perfci.units import count_things

ALPHA = 0.05
LEVELS = (0.01, 0.001, 0.0001)
SLOW_DOWNS = (0.015, 0.02, 0.05)
SHORT_NS = (5_000.0, 15_000.0)
_EXAMPLES = Path(__file__).parents[1] / "examples"
_BATCH = 20

# The model, for want of a study: a suite as large as the smoke tier on an H200, each cell read by
# three timers. Nothing of it was measured: spreads are what a pass of two sides ought to have.
_MODEL_CELLS = 28
_MODEL_SPREADS = {"cold/4": (0.0025, 0.005), "hot/1": (0.001, 0.0025), "host/2": (0.005, 0.03)}
_MODEL_PASSES = 72
_MODEL_SHARED = 0.3  # of a pass's variance, by all cells of a timer
_MODEL_DISTURBED = 0.03  # of the readings, by ten times their spread
_MODEL_NS = 10_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A testbed against itself: logarithms of ratios, of shape (passes, cells), and its cells.

    ``names`` are kernel/variant/case and contract.
    """

    title: str
    ratios: Array
    names: Sequence[str]
    contracts: Sequence[str]
    latencies_ns: Array

    def short(self, name: str) -> Array:
        """The numbers of the device's cells of 5 to 15 µs whose name has ``name`` in it.

        All cells of that name where none is so short.
        """
        named = np.array([name in each for each in self.names])
        if not named.any():
            raise UsageError(f"no cell of the study is named '{name}'")
        low_ns, high_ns = SHORT_NS
        short = (low_ns <= self.latencies_ns) & (self.latencies_ns <= high_ns)
        short &= np.array([not each.startswith("host") for each in self.contracts])
        return np.flatnonzero(named & short if (named & short).any() else named)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """Gates in which nothing changed: passes of shape (gates, cells, passes), and what is known."""

    ratios: Array
    family: Family


Alarms = list[tuple[Array, Array]]
"""Of each look the cells called slower and those called faster, of shape (gates, cells)."""

Rule = Callable[[Gates], Alarms]


def ladder(gates: Gates) -> Alarms:
    """The rule of perfci.decision.ladder."""
    return [(each.slower, each.faster) for each in _rulings(gates)]


def unconfirmed(gates: Gates) -> Alarms:
    """The same where nothing needs to be confirmed."""
    alarms = []
    for look, each in enumerate(_rulings(gates)):
        clear = np.abs(each.mean) - each.half > gates.family.beyond
        alarm = clear & each.significant & (look > 0)
        alarms.append((alarm & (each.mean > 0.0), alarm & (each.mean < 0.0)))
    return alarms


def compared(gates: Gates) -> Alarms:
    """The rule of perfci.decision.compare: all of alpha at each look, nothing confirmed."""
    alarms = []
    for passes in LOOKS:
        shown = moments(gates.ratios[..., :passes])
        least = TRIMMED_VARIANCE * gates.family.spread**2 / passes
        variance, degrees = stats.at_least(
            (least, gates.family.degrees), (shown.variance, shown.degrees)
        )
        half = stdtrit(degrees, 1.0 - ALPHA / 2.0) * np.sqrt(variance)
        p_values = 2.0 * stdtr(degrees, -np.abs(shown.mean) / np.sqrt(variance))
        called = stats.adjust_rows(p_values) <= ALPHA
        called &= np.abs(shown.mean) - half > gates.family.matters
        alarms.append((called & (shown.mean > 0.0), called & (shown.mean < 0.0)))
    return alarms


def alone(gates: Gates) -> Alarms:
    """What many do: a t test of each cell by itself, and a mean beyond the threshold."""
    alarms = []
    for passes in LOOKS:
        seen = gates.ratios[..., :passes]
        mean, error = seen.mean(axis=-1), seen.std(axis=-1, ddof=1) / math.sqrt(passes)
        called = 2.0 * stdtr(passes - 1.0, -np.abs(mean) / error) <= ALPHA
        called &= np.abs(mean) > gates.family.matters
        alarms.append((called & (mean > 0.0), called & (mean < 0.0)))
    return alarms


RULES: dict[str, Rule] = {
    "ladder": ladder,
    "unconfirmed": unconfirmed,
    "compare": compared,
    "alone": alone,
}


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=_EXAMPLES)
@click.option("--rule", "rules", multiple=True, type=click.Choice(list(RULES)))
@click.option("--gates", "count", type=click.IntRange(1), default=400, show_default=True)
@click.option("--cells", type=click.IntRange(1), default=300, show_default=True)
@click.option("--study-passes", type=click.IntRange(5), default=24, show_default=True)
@click.option("--threshold", type=click.FloatRange(0.0, min_open=True), default=0.005)
@click.option("--cell", "name", default="", help="Slow down cells with this in their name.")
@click.option("--seed", type=int, default=1, show_default=True)
def command(
    folder: Path,
    rules: Sequence[str],
    count: int,
    cells: int,
    study_passes: int,
    threshold: float,
    name: str,
    seed: int,
) -> None:
    """Draw gates from the studies of noise in FOLDER and say what each rule makes of them.

    The family is the study's own cells, then --cells of them.
    """
    for study in read_studies(folder) or [synthetic()]:
        short = study.short(name)
        for line in _describe(study, short, count, study_passes, threshold):
            click.echo(line)
        for size in dict.fromkeys((len(study.names), cells)):
            draw = partial(
                draw_gates, study, count=count, cells=size, passes=study_passes, threshold=threshold
            )
            click.echo(f"\n{count_things(size, 'cell')}")
            for line in describe_tails(draw(np.random.default_rng(seed))):
                click.echo(line)
            for each in rules or ("ladder",):
                source = np.random.default_rng(seed)
                click.echo(f"  {each}")
                for line in simulate(draw(source), RULES[each], short, source):
                    click.echo(line)


def read_studies(folder: Path) -> list[Study]:
    """The studies among the run files of a folder and those below it.

    Those of one commit on one testbed are one: passes are processes of their own anyway, and a
    testbed with several GPUs is studied in less time.
    """
    runs = [read_run_file(path) for path in sorted(folder.rglob("*.json*"))]
    by_id = {run.run_id: run for run in runs}
    together: dict[tuple[str, Commit], list[tuple[Run, Run]]] = {}
    for first, second in find_studies(run_summary(run) for run in runs):
        key = (first.environment.testbed, first.commit)
        together.setdefault(key, []).append((by_id[first.run_id], by_id[second.run_id]))
    return [_study(pairs) for pairs in together.values()]


def _study(pairs: Sequence[tuple[Run, Run]]) -> Study:
    """The cells that have all passes on both sides of every pair, less the anchors."""
    timed = [_timed(first, second) for first, second in pairs]
    names = list(dict.fromkeys(name for each in timed for name in each))
    passes = [max((len(ratios) for _, ratios in each.values()), default=0) for each in timed]
    kept = [
        name
        for name in names
        if all(
            name in each and len(each[name][1]) == count
            for each, count in zip(timed, passes, strict=True)
        )
    ]
    run, _ = pairs[0]
    if not kept:
        raise UsageError(f"study {run.pair}: no cell was timed on both sides")
    left_out = f" ({len(names) - len(kept)} left out)" if len(names) > len(kept) else ""
    return Study(
        title=f"{run.environment.device.model}, {run.started_at:%Y-%m-%d}, "
        f"{' + '.join(map(str, passes))} passes of {count_things(len(kept), 'cell')}{left_out}",
        ratios=np.array([[ratio for each in timed for ratio in each[name][1]] for name in kept]).T,
        names=kept,
        contracts=[name.rpartition(" ")[2] for name in kept],
        latencies_ns=np.array([timed[0][name][0] for name in kept]),
    )


def _timed(first: Run, second: Run) -> dict[str, tuple[float, Sequence[float]]]:
    """The latency of each cell and its passes' ratios, by its name and contract."""
    others = {_name(each): cell(second.run_id, each) for each in second.measurements}
    found = {}
    for measurement in first.measurements:
        own, other = cell(first.run_id, measurement), others.get(_name(measurement))
        if other and own.latency and own.contract and not is_anchor(own.kernel):
            found[_name(measurement)] = own.latency.typical_ns, log_ratios(own, other)
    return found


def _name(measurement: Measurement) -> str:
    contract = "" if measurement.contract is None else measurement.contract.label
    return f"{measurement.kernel}/{measurement.variant}/{measurement.case} {contract}"


def synthetic() -> Study:
    """A study that nobody measured: normal ratios, a part shared in a pass, some disturbed."""
    source = np.random.default_rng(0)
    columns, contracts = [], []
    for contract, (low, high) in _MODEL_SPREADS.items():
        shape = (_MODEL_PASSES, _MODEL_CELLS)
        noise = math.sqrt(1.0 - _MODEL_SHARED) * source.standard_normal(shape)
        noise += math.sqrt(_MODEL_SHARED) * source.standard_normal((_MODEL_PASSES, 1))
        disturbed = source.random(shape) < _MODEL_DISTURBED
        noise += disturbed * 10.0 * source.standard_normal(shape)
        columns.append(noise * np.linspace(low, high, _MODEL_CELLS))
        contracts += [contract] * _MODEL_CELLS
    return Study(
        title=f"synthetic, not measured: {_MODEL_PASSES} passes of {len(contracts)} cells",
        ratios=np.concatenate(columns, axis=1),
        names=[f"model/{number % _MODEL_CELLS} {each}" for number, each in enumerate(contracts)],
        contracts=contracts,
        latencies_ns=np.full(len(contracts), _MODEL_NS),
    )


def draw_gates(
    study: Study,
    source: np.random.Generator,
    *,
    count: int,
    cells: int,
    passes: int,
    threshold: float,
) -> Iterator[Gates]:
    """Draw gates of so many cells, a batch at a time; the study's cells come first.

    In half of the gates the sides are swapped.
    """
    kinds = sorted(set(study.contracts))
    kind = np.array([kinds.index(each) for each in study.contracts])
    while count > 0:
        gates = min(count, _BATCH)
        count -= gates
        spread, degrees = stats.trimmed_spread(_draw(study, source, gates, cells, passes))
        sides = source.choice((-1.0, 1.0), (gates, 1, 1))
        family = Family(
            spread=np.maximum(spread, 1e-6),
            degrees=np.full_like(spread, degrees),
            matters=np.full_like(spread, math.log1p(threshold)),
            kind=np.resize(kind, cells),
            size=cells,
        )
        yield Gates(ratios=sides * _draw(study, source, gates, cells, LOOKS[-1]), family=family)


def describe_tails(drawn: Iterator[Gates]) -> Iterator[str]:
    """How often the p-value of a cell falls below a level after each rung, in percent."""
    below, count = np.zeros((len(LOOKS) - 1, len(LEVELS))), 0
    for gates in drawn:
        count += gates.family.spread.size
        for look, ruling in zip(range(len(below)), _rulings(gates), strict=False):
            below[look] += [np.count_nonzero(ruling.p_value < level) for level in LEVELS]
    yield "    p below  " + "".join(f"{passes:>5} passes" for passes in LOOKS[:-1])
    for level, shares in zip(LEVELS, below.T / count, strict=True):
        yield f"    {level:>8.2%} " + "".join(f"{share:>12.3%}" for share in shares)


def simulate(
    drawn: Iterator[Gates], decide: Rule, short: Array, source: np.random.Generator
) -> Iterator[str]:
    """Let a rule decide gates, first as they are, then with a slow-down planted in each."""
    looks = LOOKS[1:-1]
    count, alarming, called = 0, 0, np.zeros((len(SLOW_DOWNS), len(looks)))
    for gates in drawn:
        size = len(gates.ratios)
        count += size
        alarming += int(
            np.any([slower | faster for slower, faster in decide(gates)], axis=(0, 2)).sum()
        )
        planted = (np.arange(size), source.choice(short, size))
        for row, slow_down in enumerate(SLOW_DOWNS):
            ratios = gates.ratios.copy()
            ratios[planted] += math.log1p(slow_down)
            slower = [each for each, _ in decide(Gates(ratios=ratios, family=gates.family))]
            for column, passes in enumerate(looks):
                called[row, column] += slower[LOOKS.index(passes)][planted].sum()
    at_most = betaincinv(alarming + 1.0, count - alarming, 0.95) if alarming < count else 1.0
    yield f"    false alarms in {alarming} of {count} gates (95 % sure: under {at_most:.1%})"
    yield "    slow-down" + "".join(f"{passes:>5} passes" for passes in looks)
    for slow_down, row in zip(SLOW_DOWNS, called / count, strict=True):
        yield f"    {slow_down:>8.1%} " + "".join(f"{share:>12.1%}" for share in row)


def _describe(
    study: Study, short: Array, count: int, passes: int, threshold: float
) -> Iterator[str]:
    spread, _ = stats.trimmed_spread(study.ratios.T[short])
    yield study.title
    yield f"{count_things(count, 'gate')}, floors from {passes} passes, threshold {threshold:.1%}"
    yield (
        f"slowed down: one of {count_things(len(short), 'cell')}, "
        f"paired spread {spread.min():.2%} to {spread.max():.2%}"
    )
    if len(study.ratios) < LADDER[-1]:
        yield f"fewer than {LADDER[-1]} passes: gates draw the same ones again and again, and"
        yield "some of what is called a false alarm is that"


def _draw(study: Study, source: np.random.Generator, gates: int, cells: int, passes: int) -> Array:
    recorded, own = study.ratios.shape
    copies = math.ceil(cells / own)
    chosen = source.integers(recorded, size=(gates, copies, passes))
    drawn = np.moveaxis(study.ratios[chosen], -1, -2)
    return drawn.reshape(gates, copies * own, passes)[:, :cells]


def _rulings(gates: Gates) -> Iterator[Ruling]:
    for look, passes in enumerate(LOOKS):
        seen = gates.ratios[..., :passes]
        yield rule(
            [moments(seen[..., :before]).mean for before in LOOKS[:look]],
            [moments(seen[..., before:]) for before in LOOKS[:look]],
            moments(seen),
            gates.family,
            ALPHA,
        )


if __name__ == "__main__":
    try:
        command()
    except (PerfciError, HistoryError) as error:
        click.echo(f"decisions.py: {error}", err=True)
        sys.exit(int(error.exit_code))
