"""The first bad commit beside its parents, measured for itself: what it alone has changed."""

from collections.abc import Callable

from perfci.bisect.answer import Confirmation
from perfci.bisect.bisection import Likeness
from perfci.bisect.notebook import Proof, Question, Symptom
from perfci.bisect.placing import place
from perfci.bisect.proof import slower_or_decided, timers_of
from perfci.bisect.trials import Specimen, Trials, UntestableError, under
from perfci.environments.installation import describe_change, packages_of
from perfci.history import commits
from perfci.history.model import Verdict
from perfci.history.summary import cell as summarised
from perfci.history.text import one_line
from perfci.reports.differences import describe_differences


def confirm(
    sha: str, trials: Trials, question: Question, proof: Proof, tell: Callable[[str], None]
) -> tuple[Confirmation, ...]:
    """Compare a commit with each of its parents. Raises OutOfTimeError."""
    confirmations = []
    with trials.open(sha) as culprit:
        for parent in culprit.commit.parents:
            tell(f"{sha[:10]} beside its parent {parent[:10]}")
            commit = commits.read_commit(trials.root, parent)
            try:
                with trials.open(parent) as before:
                    said = _compare(before, culprit, trials, question, proof)
            except UntestableError as error:
                reason = one_line(str(error))
                said = Confirmation(parent=commit, is_confirmed=True, reason=reason)
            confirmations.append(said)
    return tuple(confirmations)


def _compare(
    before: Specimen, culprit: Specimen, trials: Trials, question: Question, proof: Proof
) -> Confirmation:
    if proof.symptom is Symptom.SLOWER and not before.build.failed:
        return _compare_latencies(before, culprit, trials, proof)
    found = place(before, trials, question, proof)
    differences = _find_environment_change(before, culprit)
    if not (before.build.failed or culprit.build.failed):
        one, other = (
            summarised("", trials.check(each, timed=each.cell.case.timed))
            for each in (before, culprit)
        )
        differences += describe_differences(one, other)
    return Confirmation(
        parent=before.commit,
        is_confirmed=found.likeness is not Likeness.BAD,
        differences=differences,
        reason=found.reason,
    )


def _compare_latencies(
    before: Specimen, culprit: Specimen, trials: Trials, proof: Proof
) -> Confirmation:
    timers, wait = timers_of(trials, proof.timer), slower_or_decided(trials)
    sides, look = trials.pair(before, culprit, timers, wait)
    (comparison,) = trials.judge(sides, look)
    one, other = (under(side, proof.timer) for side in sides)
    is_compared = comparison.ratio is not None
    return Confirmation(
        parent=before.commit,
        is_confirmed=comparison.verdict is Verdict.REGRESSION or not is_compared,
        comparison=comparison,
        differences=(
            *_find_environment_change(before, culprit),
            *(describe_differences(one, other) if is_compared else ()),
        ),
        reason=comparison.reason,
    )


def _find_environment_change(before: Specimen, culprit: Specimen) -> tuple[str, ...]:
    one, other = (each.cell.variant.installation for each in (before, culprit))
    if (one and one.digest) == (other and other.digest):
        return ()
    return (f"environment: {describe_change(packages_of(one), packages_of(other))}",)
