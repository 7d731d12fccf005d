"""Rows of two sides that were measured in the same passes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import scratch

from perfci.config import load_config
from perfci.decision.pairs import log_ratios
from perfci.device import cpu
from perfci.history.model import Status, Stop
from perfci.history.summary import cell
from perfci.kernel import discover
from perfci.outcome import Outcome, Timing
from perfci.plan import Target
from perfci.prepare import build_all
from perfci.progress import LineObserver
from perfci.rows import State, rows_of
from perfci.selection import Selection, select
from perfci.timers import TIMERS


def _outcome(latency_ns: float, sm_mhz: float) -> Outcome:
    timing = Timing(
        contract=TIMERS["cpu"].contract,
        samples_ns=(latency_ns,),
        loops=1,
        stop=Stop.CONVERGED,
        span_s=(0.0, 1.0),
        sm_mhz=sm_mhz,
    )
    return Outcome(status=Status.PASSED, timings=(timing,))


def test_passes_stay_pairs_where_one_side_was_spoilt(tmp_path: Path) -> None:
    root = tmp_path / "root"
    scratch.write_kernel(scratch.quick(root), eager__py=scratch.EAGER)
    config = load_config(root, environment={}, cache=str(tmp_path / "cache"))
    (chosen,) = select(discover(root / "kernels"), Selection(cases=("large",)), "cpu")
    (built,) = build_all([chosen.variant], config, (), LineObserver())
    before, after = (State(cell=chosen, build=built) for _ in range(2))
    before.beside, after.beside = after, before
    for index, (mhz, latency_ns) in enumerate([(1980, 10), (345, 90), (1980, 20), (1980, 40)]):
        before.add(index, _outcome(latency_ns, 1980))
        after.add(index, _outcome(2 * latency_ns, mhz))
    rows = [
        row
        for state in (before, after)
        for row in rows_of(state, ("cpu",), target=Target(name="cpu", device=cpu()))
    ]
    assert [[bool(each.quarantine) for each in row.passes] for row in rows] == [
        [False, True, False, False]
    ] * 2
    assert "1 of 4 passes in quarantine: on the other side the SM clock" in rows[0].message
    first, second = (cell(name, row) for name, row in zip("ab", rows, strict=True))
    assert len(log_ratios(first, second)) == 3
    alone = next(
        rows_of(replace(before, beside=None), ("cpu",), target=Target(name="cpu", device=cpu()))
    )
    assert not any(each.quarantine for each in alone.passes)


@pytest.mark.parametrize(
    ("body", "unread"),
    [("return a * x + b", False), ("open(__file__).close(); return a * x + b", True)],
)
def test_a_row_says_where_a_variant_may_run_more_than_its_own_text(
    tmp_path: Path, body: str, unread: bool
) -> None:
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root, eager__py=f"def run(x, a, b):\n    {body}\n")
    arguments = ("run", "--commit", "abcdef1", "--case", "one", "--json", "--out", "run.json.gz")
    ended = scratch.call(root, *arguments)
    (row,) = json.loads(ended.stdout)["measurements"]
    names = {name for name, _ in row["identity"]}
    assert "source" in names
    assert ("further code not read" in names) == unread
