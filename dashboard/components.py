"""The parts that pages are put together from.

Everything is built of elements and text: nothing from the store is ever read as HTML or Markdown.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from dash import dcc, html
from dash.development.base_component import Component

from perfci import units
from perfci.dashboard import urls
from perfci.dashboard.origins import Origin
from perfci.history.model import GATE_TRIGGER, Commit, Status, Verdict

Child = Component | str
Children = Child | Sequence[Child]
Element = TypeVar("Element", bound=Component)

_VERDICT_MARKS = {
    Verdict.REGRESSION: "▲",
    Verdict.IMPROVEMENT: "▼",
    Verdict.UNCHANGED: "=",
    Verdict.INCONCLUSIVE: "?",
    Verdict.MISSING: "∅",
    Verdict.NEW: "+",
    Verdict.INCORRECT: "✕",
    Verdict.KNOWN_INCORRECT: "✕",
    Verdict.INCOMPARABLE: "≠",
}
_NOUNS = frozenset({Verdict.REGRESSION, Verdict.IMPROVEMENT})
_MEASURED_WELL = frozenset({Verdict.UNCHANGED, Verdict.IMPROVEMENT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One of several states a page can be in, and the address of that state."""

    label: str
    href: str
    chosen: bool


def aria(element: Element, **attributes: str) -> Element:
    """Give an element ARIA attributes: ``label="Pages"`` is ``aria-label``."""
    for name, value in attributes.items():
        setattr(element, f"aria-{name}", value)
    return element


def page(title: str, *body: Child | None, trail: Sequence[Child] = ()) -> Component:
    """Put a page's heading over its body; ``trail`` leads back to where it hangs."""
    crumbs = aria(html.Nav([*trail], className="trail"), label="Where you are")
    heading = html.Header([crumbs if trail else "", html.H1(title)], className="page-heading")
    return html.Main([heading, *(part for part in body if part is not None)])


def notice(title: str, *lines: Child) -> Component:
    """Say plainly why there is nothing else to see."""
    return html.Main([html.H1(title), *(html.P(line) for line in lines)], className="notice")


def not_found_notice(reason: str) -> Component:
    """Say that what the address names isn't there."""
    back = dcc.Link("The newest figures", href=urls.overview_url())
    return notice("Not found", f"404: {reason}.", html.Span([back, " are where they always are."]))


def empty_store_notice() -> Component:
    """Say that nothing was measured yet, and which command measures."""
    return notice(
        "Nothing measured yet",
        "The store holds no run. Measure the kernels of this repository with",
        command("perfci run"),
        "and reload this page.",
    )


def unstudied_notice(testbed: str) -> Component:
    """Say that noise was not studied yet, of one testbed or of any, and which command does it."""
    of = f" of the testbed “{testbed}”" if testbed else ""
    return notice(
        "Noise not studied yet",
        f"No study of noise{of} was recorded yet: how far the same code, measured as two sides, "
        f"lies from itself. Measure one {'there ' if testbed else ''}with",
        command("perfci noise"),
        "and reload this page.",
    )


def command(text: str) -> Component:
    """Show a command line as it is to be typed."""
    box = html.Span(html.Code(text), className="command", role="region", tabIndex=0)
    return aria(box, label="Command")


def choices(label: str, options: Iterable[Choice]) -> Component | None:
    """Show the states to choose from as links; None where there is nothing to choose."""
    options = list(options)
    if len(options) < 2:
        return None
    links = [
        dcc.Link(
            option.label,
            href=option.href,
            className="choice chosen" if option.chosen else "choice",
            title="shown now" if option.chosen else None,
        )
        for option in options
    ]
    parts = [html.Span(label, className="choices-label"), *links]
    return aria(html.Nav(parts, className="choices"), label=label)


def table(
    head: Sequence[Component], body: Sequence[Component], *, label: str, kind: str = ""
) -> Component:
    """Put rows into a table that scrolls inside its own box, shaded where more is out of sight."""
    inner = html.Table([html.Thead([*head]), html.Tbody([*body])], className=kind)
    return aria(html.Div(inner, className="table-box", role="region", tabIndex=0), label=label)


def heading(text: Children, *, scope: str = "col", span: int = 1, kind: str = "") -> Component:
    """Head a column (or, with ``scope='row'``, a row) of a table."""
    return html.Th(text, scope=scope, colSpan=span if span > 1 else None, className=kind)


def breakable(name: str) -> list[Child]:
    """Let a name break behind its underscores, where it must, and not within a word."""
    first, *rest = name.split("_")
    parts: list[Child] = [first]
    for word in rest:
        parts += ["_", html.Wbr(), word]
    return parts


def facts(pairs: Iterable[tuple[str, Child | None]]) -> Component:
    """List names with their values; what is None is left out."""
    return html.Dl(
        [
            html.Div([html.Dt(name), html.Dd(value)])
            for name, value in pairs
            if value is not None and value != ""
        ],
        className="facts",
    )


def verdict_mark(verdict: Verdict, change: str = "") -> Component:
    """Show a verdict as mark and words, with the change before them.

    Only a regression is red, and only what was measured to be no slower is green.
    """
    return _verdict(verdict, f"{change} " if change else "", verdict.value.replace("_", " "))


def verdict_count(verdict: Verdict, count: int) -> Component:
    """Show how many cells have a verdict: ``▲ 2 regressions``."""
    words = verdict.value.replace("_", " ")
    if verdict in _NOUNS:
        words = units.choose_number(count, words)
    return _verdict(verdict, f"{units.format_count(count)} ", words)


def _verdict(verdict: Verdict, figure: str, words: str) -> Component:
    if verdict is Verdict.REGRESSION:
        tone = "regression"
    elif verdict in _MEASURED_WELL:
        tone = "measured"
    else:
        tone = "neutral"
    return html.Span(
        [_mark(_VERDICT_MARKS[verdict]), f" {figure}", html.Span(words, className="words")],
        className=f"verdict {tone} {verdict.value}",
    )


def status_mark(status: Status, count: int | None = None) -> Component:
    """Show what became of a cell, or of so many, in words and a mark of its own."""
    if status is Status.PASSED:
        mark = "✓"
    elif status is Status.MISSING:
        mark = "∅"
    elif status is Status.SKIPPED:
        mark = "–"
    else:
        mark = "✕"
    kind = "failed" if status.is_failure else status.value
    many = "" if count is None else f"{units.format_count(count)} "
    words = status.value.replace("_", " ")
    return html.Span(
        [_mark(mark), f" {many}{words}"],
        className=f"status {kind}",
    )


def commit_line(commit: Commit, *, repository_url: str | None, run_id: str = "") -> Component:
    """Show a commit: short SHA (leads to its run), subject, link to the repository's page."""
    sha = html.Code(units.shorten_sha(commit.sha))
    web = urls.commit_url(repository_url, commit.sha)
    parts: list[Child] = [dcc.Link(sha, href=urls.run_url(run_id)) if run_id else sha]
    if commit.dirty is not None:
        parts.append(html.Span("uncommitted changes", className="badge"))
    if commit.subject:
        parts.append(html.Span(commit.subject, className="subject", title=commit.subject))
    if web is not None:
        parts.append(html.A("commit ↗", href=web, rel="noreferrer", className="outward"))
    return html.Span(_spaced(parts), className="commit")


def branch_name(commit: Commit) -> str:
    """Name a commit's branch; of one that is on no line yet, the branch that it is to go into."""
    name, dots, _ = (commit.branch or "").partition("..")
    return f"not on {name}" if dots else name


def trigger_line(origin: Origin) -> Component:
    """Say what started a run, and of a side of two which it is and where the other is."""
    run, other = origin.run, origin.other
    if other is None:
        attempt = f", attempt {units.format_count(run.attempt)}" if run.attempt > 1 else ""
        return html.Span(f"{run.trigger}{'' if run.pair else attempt}")
    name = html.Code(units.shorten_sha(other.commit.sha))
    side = ("the head " if origin.is_head else "the base ") if run.trigger == GATE_TRIGGER else ""
    link = dcc.Link("the other side" if run.is_study else name, href=urls.run_url(other.run_id))
    return html.Span([f"{run.trigger}, {side}beside ", link])


def search_form(
    action: str,
    *,
    name: str,
    value: str,
    label: str,
    placeholder: str,
    kept: Mapping[str, str],
) -> Component:
    """Ask for a text; the browser itself puts it into the URL, beside what is ``kept`` of it."""
    identifier = f"search-{name}"
    return html.Form(
        [
            html.Label(label, htmlFor=identifier, className="choices-label"),
            dcc.Input(
                id=identifier,
                name=name,
                value=value,
                type="search",
                placeholder=placeholder,
                maxLength=urls.LONGEST_TEXT,
            ),
            *(dcc.Input(name=key, value=text, type="hidden") for key, text in kept.items() if text),
            html.Button("Filter", type="submit"),
        ],
        action=action,
        method="GET",
        role="search",
        className="search",
    )


def counts(pairs: Iterable[tuple[str, int]]) -> str:
    """Write how many there are of what, without the zeros: ``38 passed · 1 timeout``."""
    return " · ".join(f"{units.format_count(count)} {name}" for name, count in pairs if count)


def _mark(mark: str) -> Component:
    return aria(html.Span(mark, className="mark"), hidden="true")


def _spaced(parts: Sequence[Child]) -> list[Child]:
    return [piece for part in parts for piece in (part, " ")][:-1]
