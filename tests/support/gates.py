"""Gates that were decided already, to be reported: a slower cell, a wrong one, and many more."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import records

from perfci.decision.compare import Side
from perfci.gate.past import Failed, Past
from perfci.gate.rungs import Ending
from perfci.gate.sides import Ends
from perfci.gate.verdicts import SAME_CODE, Gate
from perfci.history.latency import PassSpan
from perfci.history.model import Cell, Comparison, Metric, SeriesKey, Status, Verdict
from perfci.history.summary import run_summary
from perfci.history.text import one_line

HOSTILE = "Speed up | `rm` <img src=x> @team #1 **now** https://evil.example \x1b[31m\u202eend"
"""A commit's subject that means to do something on a terminal and on a page."""


def comparison(verdict: Verdict, variant: str = "tiled", **fields: Any) -> Comparison:
    """A comparison of one cell; with figures where its verdict comes from some."""
    figures: dict[str, Any] = {
        "baseline_ns": 10_000.0,
        "contender_ns": 11_000.0,
        "ratio": 1.1,
        "interval": (1.08, 1.12),
        "smallest_visible_change": 0.06,
        "paired_passes": 12,
    }
    timed = (Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.UNCHANGED, Verdict.INCONCLUSIVE)
    key = SeriesKey(
        testbed="bench",
        device_model="Some CPU",
        kernel="rope",
        case="headline",
        variant=variant,
        contract="cpu/1",
    )
    return Comparison(
        key=key, verdict=verdict, **{**(figures if verdict in timed else {}), **fields}
    )


def gate(comparisons: Sequence[Comparison], **fields: Any) -> Gate:
    """A gate of these comparisons, whose first cell's errors have doubled."""
    run = records.run()
    base = replace(run.commit, subject="One before")
    head = replace(run.commit, sha="f" * 40, subject=HOSTILE)
    before, after = (
        Side([replace(run_summary(run), run_id=name, commit=commit)], [_cell(name, error)])
        for name, commit, error in (("base", base, 1e-6), ("head", head, 2e-6))
    )
    known: dict[str, Any] = {
        "ends": Ends(base=base.sha, head=head.sha, found="merge base of HEAD and main", branch="m"),
        "base": base,
        "head": head,
        "changes": (),
        "environment": run.environment,
        "threshold": 0.05,
        "comparisons": tuple(comparisons),
        "accepted": frozenset(),
        "anchors": (),
        "before": before,
        "after": after,
        "runs": (),
        "passes": 12,
        "ending": Ending.DECIDED,
        "budget_s": 600.0,
        "spent_s": 100.0,
        "needed_s": 200.0,
        "interrupted": False,
    }
    return Gate(**{**known, **fields})


def busy_gate(**fields: Any) -> Gate:
    """A gate of one cell while whose base was measured others used 40 % of the cores."""
    decided = gate([comparison(Verdict.UNCHANGED, "v2")], **fields)
    before = replace(
        decided.before, cells=[records.beside_others(each, 0.4) for each in decided.before.cells]
    )
    return replace(decided, before=before)


def wild_gate() -> Gate:
    """A gate of which a slower cell's passes lie far apart, as do a few of an unchanged one."""
    calm = PassSpan(count=12, far=0, lowest_ns=9_900.0, highest_ns=10_100.0)
    wild = PassSpan(count=12, far=2, lowest_ns=10_900.0, highest_ns=1e6)
    slower, unchanged = (
        comparison(verdict, name, baseline_passes=calm, contender_passes=wild)
        for verdict, name in ((Verdict.REGRESSION, "slow"), (Verdict.UNCHANGED, "same"))
    )
    return gate([slower, unchanged])


def known_gate(count: int = 1) -> Gate:
    """A gate of cells of the same code, so many of which are known to be wrong, by two timers."""
    same = [
        replace(each, verdict=Verdict.UNCHANGED, reason=SAME_CODE)
        for number in range(count + 1)
        for each in [comparison(Verdict.NEW, f"v{number}")]
        for each in (each, replace(each, key=replace(each.key, contract="host/2")))
    ]
    failed = tuple(
        Failed(
            key=each.key,
            status=Status.WRONG_VALUES,
            reason=f"wrong values: off by <3> {one_line(HOSTILE)}",
            run_id="20261130T014343-ab12cd34",
        )
        for each in same[:-2]
    )
    return gate(same, past=Past(failed_at_base=failed), passes=0, ending=None)


def mixed_gate(**fields: Any) -> Gate:
    """A gate with one of each verdict, and one cell of the same code."""
    names = {verdict: f"v{number}" for number, verdict in enumerate(Verdict)}
    return gate(
        [
            *(comparison(verdict, name) for verdict, name in names.items()),
            Comparison(
                key=comparison(Verdict.NEW, "same").key,
                verdict=Verdict.UNCHANGED,
                reason=SAME_CODE,
            ),
        ],
        **fields,
    )


def _cell(run_id: str, error: float) -> Cell:
    metrics = (Metric(name="rms_error", value=error, unit=""),)
    return replace(records.cell((1.0, 1.0), run_id=run_id, variant="v2"), metrics=metrics)
