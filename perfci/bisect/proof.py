"""Whether two ends of a bisection differ, and in what: else every step would be a guess."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from perfci.bisect.answer import Ends
from perfci.bisect.notebook import Proof, Question, Symptom
from perfci.bisect.trials import Sides, Specimen, Trials, UntestableError
from perfci.decision import stats
from perfci.decision.ladder import undecided
from perfci.decision.rule import LOOKS
from perfci.errors import IncomparableError, MissingError
from perfci.history.model import Cell as RecordedCell
from perfci.history.model import Measurement, Status, Verdict
from perfci.history.text import one_line
from perfci.timers import TIMERS, timers_on

CHECKS = LOOKS[0]
"""How often each end is checked where one is not right."""


def prove(trials: Trials, question: Question, tell: Callable[[str], None]) -> Ends:
    """Measure both ends in the same passes, or check them, until it is known that they differ.

    Raises MissingError where the good end has nothing to compare with, IncomparableError where
    an end cannot be tested, OutOfTimeError where the budget ends before.
    """
    with ExitStack() as stack:
        good = stack.enter_context(_end(trials, "good", question.good))
        bad = stack.enter_context(_end(trials, "bad", question.bad))
        if good.build.failed:
            raise _nothing_to_compare_with(good, f"does not build: {good.build.message}")
        ends = _compare(trials, question, good, bad, tell)
    if ends.proof is None:
        return ends
    return replace(ends, proof=replace(ends.proof, codes=(good.code, bad.code)))


def timers_of(trials: Trials, wanted: str) -> tuple[str, ...]:
    """The names of the timers of the device that read under a contract; all where none is named."""
    return tuple(
        name
        for name in timers_on(trials.place.target.device.kind)
        if wanted in ("", TIMERS[name].contract.timer, TIMERS[name].contract.label)
    )


def slower_or_decided(trials: Trials) -> Callable[[Sides, int], bool]:
    """Whether more passes are needed to know that the second side is slower, or is not."""

    def waits(sides: Sides, look: int) -> bool:
        comparisons = trials.judge(sides, look)
        slower = any(each.verdict is Verdict.REGRESSION for each in comparisons)
        return not slower and bool(undecided(comparisons))

    return waits


def describe(status: Status, message: str) -> str:
    """A status and the first line of what was said with it."""
    return _with(status.value.replace("_", " "), message)


@contextmanager
def _end(trials: Trials, which: str, sha: str) -> Iterator[Specimen]:
    try:
        with trials.open(sha) as specimen:
            yield specimen
    except UntestableError as error:
        raise IncomparableError(f"the {which} end {sha[:10]} cannot be tested: {error}") from None


def _compare(
    trials: Trials,
    question: Question,
    good: Specimen,
    bad: Specimen,
    tell: Callable[[str], None],
) -> Ends:
    if bad.build.failed:
        message = _with("does not build", bad.build.message)
        return Ends(proof=Proof(symptom=Symptom.UNBUILT, message=message))
    if good.code and good.code == bad.code:
        return Ends(reason="they run the same code, so that there is nothing to be measured")
    if good.cell.case.timed:
        tell("measuring whether the ends differ")
        wait = slower_or_decided(trials)
        sides, look = trials.pair(good, bad, timers_of(trials, question.timer), wait)
        _require_right(good, [each for each in sides[0].cells if each.status.is_failure])
        if not any(each.status.is_failure for each in sides[1].cells):
            return _by_latency(trials, question, sides, look)
    tell(f"checking each end {CHECKS} times")
    return _by_checks(trials, good, bad)


def _by_latency(trials: Trials, question: Question, sides: Sides, look: int) -> Ends:
    order = [TIMERS[name].contract.label for name in timers_of(trials, question.timer)]
    compared = trials.judge(sides, look)
    comparisons = tuple(sorted(compared, key=lambda each: order.index(each.key.contract)))
    for each in comparisons:
        change = trials.change(sides, each.key.contract)
        if each.verdict is Verdict.REGRESSION and change is not None:
            proof = Proof(
                symptom=Symptom.SLOWER,
                timer=each.key.contract,
                change=change,
                error=min(1.0, len(LOOKS) * stats.p_value(change) / 2.0),
            )
            return Ends(proof=proof, comparisons=comparisons)
    reason = "the bad end was not shown to be slower, and it is right"
    return Ends(reason=reason, comparisons=comparisons)


def _by_checks(trials: Trials, good: Specimen, bad: Specimen) -> Ends:
    timed = good.cell.case.timed
    rows = [trials.check(bad, timed=timed) for _ in range(CHECKS)]
    incorrect = [each for each in rows if each.status.is_incorrect]
    sick = incorrect or [each for each in rows if each.status.is_failure]
    if not sick:
        return Ends(reason=f"the bad end was right in all of {CHECKS} checks")
    for _ in range(CHECKS):
        row = trials.check(good, timed=timed)
        _require_right(good, [row] if row.status.is_failure else [])
    proof = Proof(
        symptom=Symptom.INCORRECT if incorrect else Symptom.FAILING,
        wrong=len(sick),
        checks=len(rows),
        message=describe(sick[0].status, sick[0].message),
    )
    return Ends(proof=proof)


def _require_right(good: Specimen, failed: Sequence[Measurement | RecordedCell]) -> None:
    """MissingError where the good end failed by itself, not only beside the bad one."""
    own = [each for each in failed if each.status is not Status.MISSING]
    if own:
        raise _nothing_to_compare_with(good, describe(own[0].status, own[0].message))


def _nothing_to_compare_with(good: Specimen, words: str) -> MissingError:
    return MissingError(
        f"the good end {good.commit.sha[:10]} has nothing to compare with "
        f"({one_line(words)}); give one where the cell is right"
    )


def _with(words: str, message: str) -> str:
    first_line = next(iter(message.strip().splitlines()), "")
    return one_line(f"{words}: {first_line}" if first_line else words)
