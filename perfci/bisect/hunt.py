"""A bisection: prove that the ends differ, then place commits until the first bad one is left."""

import time
from collections.abc import Callable

from perfci import units
from perfci.bisect import likeness
from perfci.bisect.answer import Bisection, Confirmation, Ending, Ends
from perfci.bisect.bisection import Likeness, Search, narrow
from perfci.bisect.confirmation import confirm
from perfci.bisect.notebook import Notebook, Proof, Question
from perfci.bisect.placing import examine
from perfci.bisect.proof import prove
from perfci.bisect.report import describe_finding
from perfci.bisect.trials import OutOfTimeError, Trials
from perfci.history import commits
from perfci.history.midpoints import rank


def bisect(
    question: Question, trials: Trials, notebook: Notebook, tell: Callable[[str], None]
) -> Bisection:
    """Search until the first bad commit is found, cannot be, or the budget ends.

    ``tell`` hears a line before and after each step. What was found is in the notebook, and stays
    there where the budget has ended or where this is interrupted. Raises as ``prove`` does.
    """
    start_s = time.monotonic()
    ends = Ends(proof=notebook.proof)
    confirmations: tuple[Confirmation, ...] = ()
    try:
        if ends.proof is None:
            ends = prove(trials, question, tell)
        if ends.proof is None:
            ending = Ending.NO_DIFFERENCE
        else:
            notebook.prove(ends.proof)
            search = _search(question, trials, notebook, ends.proof, tell)
            ending = Ending.RANGE
            if len(search.suspects) == 1:
                confirmations = confirm(search.bad, trials, question, ends.proof, tell)
                is_confirmed = all(each.is_confirmed for each in confirmations)
                ending = Ending.FOUND if is_confirmed else Ending.UNCONFIRMED
    except OutOfTimeError:
        ending = Ending.OUT_OF_TIME
    root = trials.root
    search = _narrow(question, trials, notebook)
    if ending is not Ending.OUT_OF_TIME:
        notebook.close()
    return Bisection(
        question=question,
        good=commits.read_commit(root, question.good),
        bad=commits.read_commit(root, question.bad),
        count=len(rank(root, question.bad, [question.good])),
        ending=ending,
        ends=ends,
        findings=tuple((commits.read_commit(root, each.sha), each) for each in notebook.findings),
        suspects=tuple(commits.read_commit(root, each) for each in search.suspects),
        confirmations=confirmations,
        confidence=_confidence(ends.proof, notebook),
        passes=trials.passes,
        spent_s=time.monotonic() - start_s,
    )


def _search(
    question: Question,
    trials: Trials,
    notebook: Notebook,
    proof: Proof,
    tell: Callable[[str], None],
) -> Search:
    while True:
        search = _narrow(question, trials, notebook)
        sha = search.choose()
        if sha is None:
            return search
        count = units.count_things(len(search.suspects), "commit")
        tell(f"{count}, about {search.steps_left} more to be tested: {sha[:10]}")
        finding = examine(sha, trials, question, notebook, proof)
        notebook.add(finding)
        tell(f"{sha[:10]} is {describe_finding(finding)}")


def _narrow(question: Question, trials: Trials, notebook: Notebook) -> Search:
    return narrow(
        question.good,
        question.bad,
        [(each.sha, each.likeness) for each in notebook.findings],
        lambda bad, goods: rank(trials.root, bad, goods),
    )


def _confidence(proof: Proof | None, notebook: Notebook) -> float:
    found = [each.error for each in notebook.findings if each.likeness is not Likeness.SKIPPED]
    return likeness.trust([proof.error, *found] if proof else found)
