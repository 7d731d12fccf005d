"""A bisection as lines for a terminal, at most 80 wide, and what to do next."""

from collections.abc import Iterator
from datetime import datetime

import click

from perfci import units
from perfci.bisect.answer import Bisection, Confirmation, Ending, Ends
from perfci.bisect.bisection import Likeness
from perfci.bisect.notebook import Finding, Symptom
from perfci.decision import stats
from perfci.decision.compare import to_ratio
from perfci.history.model import Commit, Comparison
from perfci.reports.columns import WIDTH, Column, lay_out, shorten, wrap
from perfci.reports.comparison import comparison_table
from perfci.reports.gate import break_command
from perfci.reports.text import head, name_commit, paint

_ALPHA = 0.05
_LIKENESS = {
    Likeness.GOOD: ("✓ good", "green"),
    Likeness.BAD: ("▲ bad", "red"),
    Likeness.SKIPPED: ("· skipped", "yellow"),
}
_COLUMNS = (
    Column("commit"),
    Column("subject", shrinks=True),
    Column("passes", align="right"),
    Column("change", align="right"),
    Column("interval", align="right"),
    Column("is"),
)
_SYMPTOMS = {
    Symptom.SLOWER: "slower",
    Symptom.INCORRECT: "incorrect",
    Symptom.UNBUILT: "not built",
    Symptom.FAILING: "failing",
}


def bisect_text(bisection: Bisection, authored_at: datetime | None) -> list[str]:
    """Write a bisection; ``authored_at`` is when the first bad commit was written."""
    lines = [*_write_head(bisection), "", *_write_ends(bisection.ends), ""]
    if bisection.findings:
        lines += [*_write_steps(bisection), ""]
    lines += [*_write_answer(bisection, authored_at), ""]
    if commands := find_commands(bisection):
        lines += ["to see it again"]
        for words in commands:
            lines += break_command(words)
        lines += [""]
    return [*lines, *wrap(describe_effort(bisection), indent=0)]


def describe_finding(finding: Finding) -> str:
    """Say what a commit is like, and why."""
    words = finding.likeness.value
    if finding.same_as:
        return f"{words}: the same code as {units.shorten_sha(finding.same_as)}"
    if finding.change is not None:
        change = units.format_change(to_ratio(finding.change.mean))
        words += f", {change} against the good end"
    return f"{words}: {finding.reason}" if finding.reason else words


def find_commands(bisection: Bisection) -> list[list[str]]:
    """What shows the first bad commit beside each parent again, as words."""
    if bisection.ending not in (Ending.FOUND, Ending.UNCONFIRMED):
        return []
    question, head_sha = bisection.question, units.shorten_sha(bisection.suspects[0].sha)
    cell = ["--kernel", question.kernel, "--variant", question.variant, "--case", question.case]
    return [
        [
            *("perfci", "gate", "--base", units.shorten_sha(each.parent.sha)),
            *("--head", head_sha, *cell),
        ]
        for each in bisection.confirmations
    ]


def interval_of(change: stats.Estimate | None) -> tuple[float, float] | None:
    """The ratios between which a change lies, at 95 %."""
    if change is None:
        return None
    half = stats.half_width(change, _ALPHA)
    return to_ratio(change.mean - half), to_ratio(change.mean + half)


def describe_effort(bisection: Bisection) -> str:
    """Say how much was looked at, and how sure the answer is."""
    skipped = sum(each.likeness is Likeness.SKIPPED for _, each in bisection.findings)
    passes = units.count_things(bisection.passes, "pass", "passes")
    parts = [
        units.count_things(bisection.count, "commit"),
        units.count_things(len(bisection.findings), "step"),
        *([f"{units.format_count(skipped)} skipped"] if skipped else []),
        f"{passes} in {units.format_duration(bisection.spent_s)}",
    ]
    sure = bisection.ends.proof and bisection.ending is not Ending.OUT_OF_TIME
    confidence = f"; confidence {format_confidence(bisection.confidence)}" if sure else ""
    return ", ".join(parts) + confidence


def format_confidence(confidence: float) -> str:
    """Write a chance of being right, never as certainty: ``98.7 %``, ``above 99.9 %``."""
    return "above 99.9 %" if confidence > 0.999 else f"{100.0 * confidence:.1f} %"


def describe_symptom(ends: Ends) -> str:
    """Say in what the ends differ, or that nobody can say so."""
    proof = ends.proof
    if proof is None:
        return f"The ends do not differ: {ends.reason}" if ends.reason else "The ends: not measured"
    if proof.change is not None:
        change = units.format_change(to_ratio(proof.change.mean))
        interval = units.format_interval(interval_of(proof.change))
        return f"The ends differ: the bad one is slower, {change}, {interval}, by {proof.timer}"
    times = f" in {proof.wrong} of {proof.checks} checks" if proof.checks else ""
    return f"The ends differ: the bad one is {_SYMPTOMS[proof.symptom]}{times} ({proof.message})"


def _write_head(bisection: Bisection) -> list[str]:
    question = bisection.question
    cell = f"{question.kernel}/{question.variant}/{question.case}"
    environment = question.environment
    return [
        head("bisect", cell),
        head("good", name_commit(bisection.good), bisection.good.subject),
        head("bad", name_commit(bisection.bad), bisection.bad.subject),
        head("testbed", environment.testbed, environment.device.model),
    ]


def _write_ends(ends: Ends) -> list[str]:
    lines = wrap(describe_symptom(ends), indent=0)
    if ends.proof is None and ends.comparisons:
        lines += ["", *comparison_table(ends.comparisons)]
    return lines


def _write_steps(bisection: Bisection) -> list[str]:
    rows = [
        (
            name_commit(commit),
            commit.subject,
            units.format_count(finding.passes),
            units.format_change(None if finding.change is None else to_ratio(finding.change.mean)),
            units.format_interval(interval_of(finding.change)),
            _LIKENESS[finding.likeness][0],
        )
        for commit, finding in bisection.findings
    ]
    colours = [_LIKENESS[finding.likeness][1] for _, finding in bisection.findings]
    lines = paint(lay_out(_COLUMNS, rows), rows, colours)
    for commit, finding in bisection.findings:
        if finding.reason or finding.same_as:
            sha = units.shorten_sha(commit.sha)
            lines += wrap(f"{sha} {describe_finding(finding)}", indent=2)
    return lines


def _write_answer(bisection: Bisection, authored_at: datetime | None) -> Iterator[str]:
    ending, suspects = bisection.ending, bisection.suspects
    if ending is Ending.NO_DIFFERENCE:
        yield from wrap("Nothing to search for. Are these the commits, is it this cell?", indent=0)
    elif ending is Ending.OUT_OF_TIME:
        left = units.count_things(len(suspects), "commit")
        text = f"The budget ended with {left} left; the same command goes on"
        yield from wrap(text, indent=0)
    elif ending is Ending.RANGE:
        text = "Only commits that were skipped are left. The first bad one is one of"
        yield from wrap(text, indent=0)
        for each in suspects:
            yield _indented(units.shorten_sha(each.sha), each.subject)
    else:
        yield from _write_culprit(bisection, suspects[0], authored_at)


def _write_culprit(
    bisection: Bisection, culprit: Commit, authored_at: datetime | None
) -> Iterator[str]:
    merge = "the merge " if len(culprit.parents) > 1 else ""
    yield click.style(f"The first bad commit is {merge}{culprit.sha[:40]}", fg="red")
    written = [units.format_date(authored_at)] if authored_at else []
    yield _indented(*written, culprit.subject)
    for each in bisection.confirmations:
        yield from wrap(describe_confirmation(each), indent=2)
        yield from wrap("; ".join(each.differences), indent=4)
    if bisection.ending is Ending.UNCONFIRMED:
        text = (
            "It does not differ so from its parent: the change came in parts, or a step was "
            "mistaken. Bisect again between two of the commits above"
        )
        yield from wrap(text, indent=2)
    elif len(culprit.parents) > 1:
        text = "None of its parents is bad by itself: the merge is"
        yield from wrap(text, indent=2)


def describe_confirmation(confirmation: Confirmation) -> str:
    """Say what the first bad commit does beside a parent of it."""
    parent = f"beside its parent {units.shorten_sha(confirmation.parent.sha)}"
    if confirmation.comparison is not None and confirmation.comparison.ratio is not None:
        return f"{parent}: {_describe_change(confirmation.comparison)}"
    if confirmation.reason:
        return f"{parent}, of which: {confirmation.reason}"
    return f"{parent}, which is right"


def _describe_change(comparison: Comparison) -> str:
    return (
        f"{units.format_latency(comparison.baseline_ns)} → "
        f"{units.format_latency(comparison.contender_ns)}, "
        f"{units.format_change(comparison.ratio)}, {units.format_interval(comparison.interval)}, "
        f"in {units.count_things(comparison.paired_passes, 'pass', 'passes')}"
    )


def _indented(*parts: str) -> str:
    return f"  {shorten(head(*parts), WIDTH - 2)}"
