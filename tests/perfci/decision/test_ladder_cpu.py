"""Gates on this very machine, with whatever else it has to do: the same code, and twice as slow."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import scratch
from records import run

from perfci.config import load_config
from perfci.decision.compare import Side
from perfci.decision.ladder import LOOKS, Thresholds, judge
from perfci.device import cpu
from perfci.history.model import Measurement, Verdict
from perfci.history.summary import cell, run_summary
from perfci.kernel import discover
from perfci.plan import Target
from perfci.progress import LineObserver
from perfci.run import measure_pair
from perfci.selection import Selection, select
from perfci.workers.passes import PassServer

_PASSES = 30
_GATES = 20
_LOOP = scratch.PLAIN[scratch.PLAIN.index("  for (int64_t") : scratch.PLAIN.index("  return 0;")]
_TWICE = scratch.PLAIN.replace(_LOOP, _LOOP + '  asm volatile("" ::: "memory");\n' + _LOOP)


def _measure(folder: Path, *, passes: int) -> list[tuple[Measurement, ...]]:
    """Passes that hold both sides of three cells, of which one is twice as slow on the second."""
    sides = []
    for name, slow in (("before", scratch.PLAIN), ("after", _TWICE)):
        root = scratch.quick(folder / name, timeout_s=60)
        scratch.write_kernel(
            root, plain__cpp=scratch.PLAIN, eager__py=scratch.EAGER, slow__cpp=slow
        )
        sides.append(select(discover(root / "kernels"), Selection(cases=("large",)), "cpu"))
    measured = measure_pair(
        *sides,
        load_config(folder / "before", environment={}, cache=str(folder / "cache")),
        target=Target(name="cpu", device=cpu()),
        server=PassServer({}),
        passes=passes,
        observer=LineObserver(),
    )
    return [side.measurements for side in measured]


def _some(rows: tuple[Measurement, ...], name: str, chosen: Sequence[int]) -> Side:
    """A side that has these passes alone."""
    picked = [replace(each, passes=tuple(each.passes[index] for index in chosen)) for each in rows]
    part = replace(run(*picked, run_id=name), pair="p")
    return Side([run_summary(part)], [cell(name, each) for each in part.measurements])


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_twenty_gates_raise_no_alarm_and_twice_as_slow_is_a_regression(tmp_path: Path) -> None:
    sides = _measure(tmp_path, passes=_PASSES)
    source = random.Random(1)
    for _ in range(_GATES):
        drawn = source.sample(range(_PASSES), LOOKS[1])
        swapped = source.random() < 0.5
        for look, passes in enumerate(LOOKS[:2]):
            both = [
                _some(rows, name, drawn[:passes])
                for name, rows in zip("ab", sides[::-1] if swapped else sides, strict=True)
            ]
            judged = judge(*both, look=look, thresholds=Thresholds(), floors={})
            verdicts = {each.key.variant: each.verdict for each in judged}
            slow = verdicts.pop("slow")
            assert set(verdicts.values()) <= {Verdict.UNCHANGED, Verdict.INCONCLUSIVE}
        assert slow is (Verdict.IMPROVEMENT if swapped else Verdict.REGRESSION)
