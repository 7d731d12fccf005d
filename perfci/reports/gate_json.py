"""A gate as plain values, for scripts."""

from typing import Any

from perfci.gate.verdicts import Gate, exit_code_of
from perfci.history.plain import plain
from perfci.reports.gate import describe_load, find_all_differences, find_means

VALUES_FILE = "gate.json"
"""What a gate that writes files leaves beside its run files."""


def gate_values(gate: Gate, *, fail_on_inconclusive: bool) -> dict[str, Any]:
    """All that was decided, with the records as run files have them."""
    differences = find_all_differences(gate)
    return {
        "base": plain(gate.base),
        "head": plain(gate.head),
        "found": gate.ends.found,
        "environment_change": gate.environment_change,
        "changes": gate.changes,
        "environment": plain(gate.environment),
        "exit_code": int(exit_code_of(gate, fail_on_inconclusive=fail_on_inconclusive)),
        "passes": gate.passes,
        "ending": gate.ending,
        "budget_s": gate.budget_s,
        "spent_s": gate.spent_s,
        "needed_s": gate.needed_s,
        "comparisons": [
            {
                **plain(each),
                "accepted": each.key in gate.accepted,
                "differences": differences.get(each.key, ()),
            }
            for each in gate.comparisons
        ],
        "checked": gate.checked,
        "means": [plain(each) for each in find_means(gate.comparisons)],
        "load": describe_load(gate),
        "anchors": [plain(each) for each in gate.anchors],
        "since": [plain(each) for each in gate.past.since],
        "best": [plain(each) for each in gate.past.best],
        "failed_at_base": [plain(each) for each in gate.past.failed_at_base],
        "runs": [run.run_id for run in gate.runs],
    }
