"""What a testbed's newest commit amounts to, in words: the verdict first, then what to look at."""

from collections import Counter
from collections.abc import Sequence

from dash import dcc, html
from dash.development.base_component import Component

from perfci import units
from perfci.dashboard import components, urls
from perfci.dashboard.components import Child
from perfci.dashboard.snapshot import Snapshot
from perfci.decision.verdict import WORST_FIRST, sort_worst_first
from perfci.history.model import Comparison, Verdict

_COMPARED = frozenset({Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.UNCHANGED})
_WORTH_A_LOOK = frozenset({Verdict.REGRESSION, Verdict.INCORRECT, Verdict.MISSING})
_MOST_LISTED = 6
_MOST_CASES = 3


def show(snapshot: Snapshot) -> Component:
    """Say how the newest commit compares, count the other verdicts, name what wants a look."""
    tally = Counter(each.verdict for each in snapshot.comparisons.values())
    others = [each for each in WORST_FIRST if tally[each] and each is not Verdict.REGRESSION]
    counts: list[Child] = []
    for verdict in others:
        counts += [components.verdict_count(verdict, tally[verdict]), " "]
    tone = "red" if tally[Verdict.REGRESSION] else "plain"
    return html.Div(
        [
            html.P(_sentence(snapshot, tally), className="sentence"),
            html.P(counts, className="verdicts") if counts else "",
            *_list_worst(snapshot),
            html.P(snapshot.load, className="beside") if snapshot.load else "",
        ],
        className=f"headline {tone}",
    )


def _sentence(snapshot: Snapshot, tally: Counter[Verdict]) -> list[Child]:
    if not snapshot.previous:
        if snapshot.run.commit.dirty is not None:
            return ["Uncommitted changes: nothing is on the branch’s line yet to compare with."]
        return ["The first commit measured here: no earlier commit to compare with."]
    run = snapshot.previous[0]
    sha = html.Code(units.shorten_sha(run.commit.sha))
    against: list[Child] = [" against ", dcc.Link(sha, href=urls.run_url(run.run_id)), "."]
    if tally[Verdict.REGRESSION]:
        return [components.verdict_count(Verdict.REGRESSION, tally[Verdict.REGRESSION]), *against]
    if any(tally[each] for each in _COMPARED):
        return ["No regression", *against]
    return ["No regression shown, and none ruled out", *against]


def _list_worst(snapshot: Snapshot) -> list[Component]:
    """Name the variants that got slower, are wrong or are gone, the worst first."""
    groups: dict[tuple[Verdict, str, str], list[Comparison]] = {}
    for each in sort_worst_first(snapshot.comparisons.values()):
        if each.verdict in _WORTH_A_LOOK:
            key = (each.verdict, each.key.kernel, each.key.variant)
            groups.setdefault(key, []).append(each)
    if not groups:
        return []
    shown = [html.Li(_describe(group)) for group in list(groups.values())[:_MOST_LISTED]]
    if len(groups) > _MOST_LISTED:
        shown.append(html.Li(f"and {units.format_count(len(groups) - _MOST_LISTED)} more"))
    return [html.Ul(shown, className="worst")]


def _describe(group: Sequence[Comparison]) -> list[Child]:
    worst = group[0]
    change = "" if worst.ratio is None else units.format_change(worst.ratio)
    key = worst.key
    address = urls.kernel_url(key.kernel, testbed=key.testbed, case=key.case, timer=key.contract)
    if not key.contract:
        address = urls.kernel_url(key.kernel, testbed=key.testbed)
    timers: dict[str, list[str]] = {}
    for each in group:
        timers.setdefault(each.key.case, []).append(each.key.contract)
    names = [
        f"{case} ({', '.join(known)})" if (known := [each for each in contracts if each]) else case
        for case, contracts in timers.items()
    ]
    cells = ", ".join(names[:_MOST_CASES])
    if len(names) > _MOST_CASES:
        cells += f" and {units.format_count(len(names) - _MOST_CASES)} more"
    return [
        components.verdict_mark(worst.verdict, change),
        " ",
        dcc.Link(f"{key.kernel} / {key.variant}", href=address),
        html.Span(f" in {cells}", className="beside"),
    ]
