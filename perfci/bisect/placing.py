"""Which end one commit is like: measured beside the good end, or checked, until that is known."""

from dataclasses import replace

from perfci.bisect import likeness
from perfci.bisect.bisection import Likeness
from perfci.bisect.notebook import Finding, Notebook, Proof, Question, Symptom
from perfci.bisect.proof import describe, timers_of
from perfci.bisect.trials import Sides, Specimen, Trials, UntestableError, under
from perfci.decision.rule import LOOKS
from perfci.history.model import Status
from perfci.history.text import one_line


def examine(
    sha: str, trials: Trials, question: Question, notebook: Notebook, proof: Proof
) -> Finding:
    """What a commit is like. One that cannot be tested is skipped, and says why.

    Raises OutOfTimeError where the budget ends before.
    """
    before = trials.passes
    try:
        with trials.open(sha) as specimen:
            found = _same_code(specimen, question, notebook, proof)
            found = found or place(specimen, trials, question, proof)
            code = specimen.code
    except UntestableError as error:
        found, code = _skipped(str(error)), ""
    return replace(found, sha=sha, code=code, passes=trials.passes - before)


def place(specimen: Specimen, trials: Trials, question: Question, proof: Proof) -> Finding:
    """Which end a commit is like, by its own build, checks or passes."""
    if specimen.build.failed:
        message = next(iter(specimen.build.message.strip().splitlines()), "")
        reason = one_line(f"it does not build: {message}")
        is_bad = proof.symptom is Symptom.UNBUILT
        return _bad(reason) if is_bad else _skipped(reason)
    if proof.symptom is Symptom.UNBUILT:
        return Finding(likeness=Likeness.GOOD)
    if proof.symptom is Symptom.SLOWER:
        return _by_latency(specimen, trials, question, proof)
    return _by_checks(specimen, trials, proof)


def _same_code(
    specimen: Specimen, question: Question, notebook: Notebook, proof: Proof
) -> Finding | None:
    """What was found of a commit that runs the same code, where there is one."""
    good, bad = proof.codes
    judged = (
        Finding(sha=question.good, likeness=Likeness.GOOD, code=good),
        Finding(sha=question.bad, likeness=Likeness.BAD, code=bad, change=proof.change),
        *notebook.findings,
    )
    for each in judged:
        if specimen.code and each.code == specimen.code and each.likeness is not Likeness.SKIPPED:
            # It is right if the other is, whose error is counted.
            return replace(each, same_as=each.same_as or each.sha, error=0.0, reason="")
    return None


def _by_latency(specimen: Specimen, trials: Trials, question: Question, proof: Proof) -> Finding:
    change = proof.change
    if change is None:
        raise ValueError("a proof of a slow-down has a change")

    def ask(sides: Sides, look: int) -> likeness.Answer | None:
        own = trials.change(sides, proof.timer)
        is_last = look == len(LOOKS) - 1
        return None if own is None else likeness.place(own, change, is_last=is_last)

    def waits(sides: Sides, look: int) -> bool:
        answer = ask(sides, look)
        failed = under(sides[1], proof.timer).status.is_failure
        return not failed and (answer is None or answer.likeness is None)

    with trials.open(question.good) as good:
        sides, look = trials.pair(good, specimen, timers_of(trials, proof.timer), waits)
    row = under(sides[1], proof.timer)
    if row.status is not Status.PASSED:
        return _skipped(describe(row.status, row.message))
    own, answer = trials.change(sides, proof.timer), ask(sides, look)
    if answer is None or answer.likeness is None:
        return replace(_skipped("no passes could tell which end it is like"), change=own)
    return Finding(
        likeness=answer.likeness,
        reason="it has a part of the change" if answer.is_part else "",
        change=own,
        error=answer.error,
    )


def _by_checks(specimen: Specimen, trials: Trials, proof: Proof) -> Finding:
    needed = likeness.count_needed(proof.wrong, proof.checks)
    for _ in range(needed):
        row = trials.check(specimen, timed=specimen.cell.case.timed)
        if row.status.is_failure:
            reason = describe(row.status, row.message)
            is_bad = row.status.is_incorrect is (proof.symptom is Symptom.INCORRECT)
            return _bad(reason) if is_bad else _skipped(reason)
    error = likeness.chance_right(proof.wrong, proof.checks, times=needed)
    return Finding(likeness=Likeness.GOOD, error=error)


def _bad(reason: str) -> Finding:
    return Finding(likeness=Likeness.BAD, reason=reason)


def _skipped(reason: str) -> Finding:
    return Finding(likeness=Likeness.SKIPPED, reason=one_line(reason))
