"""A plan of what is to be done about an event, as lines for a terminal."""

from perfci import units
from perfci.ci.plan import Plan
from perfci.history.text import one_line, without_commands
from perfci.reports.columns import wrap


def plan_text(plan: Plan) -> list[str]:
    """Write a plan."""
    ends = (("base", plan.base), ("head", plan.head))
    parts = [
        str(plan.act),
        *(f"{name} {units.shorten_sha(sha)}" for name, sha in ends if sha),
        *(f"{name} {value}" for name, value in plan.options),
    ]
    lines = [*wrap(" · ".join(parts), indent=0), *wrap(one_line(plan.reason), indent=2)]
    if plan.runners:
        lines += wrap(f"runners: {', '.join(plan.runners)}", indent=2)
    if not plan.is_admitted:
        lines += wrap("not admitted to a runner: nothing is known of it", indent=2)
    return [without_commands(each) for each in lines]
