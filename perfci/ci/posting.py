"""What stands on GitHub about one attempt: one comment and one check run, kept as they should be.

Every function here looks first and then does one thing about what it sees, over and over
(``Patience.settle``). A call that broke off, or another job that posts at the same time, is
repaired by the next look, and the newest attempt wins.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from perfci.ci.conclusion import Conclusion
from perfci.ci.github import CheckRun, Comment, Repository
from perfci.ci.mark import Mark, marked, read_id, read_mark, write_id
from perfci.ci.patience import GoneError, Patience

_ANNOTATIONS_A_CALL = 50
_WITHOUT_VERDICT = (Conclusion.SKIPPED, Conclusion.CANCELLED, Conclusion.ACTION_REQUIRED)


class SupersededError(Exception):
    """A newer attempt has begun, which has the last word."""


class Replacing(StrEnum):
    """Whose comment a text may take the place of."""

    ANY = "any"
    """Ours of any attempt that is not newer; where there is none, it is written."""
    STALE = "stale"
    """Only one of another commit or of this very run: another run's of this commit is valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a check run says."""

    title: str
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Where is posted, how patiently, and of which attempt at which check."""

    repository: Repository
    patience: Patience
    mark: Mark
    details_url: str


def post_comment(desk: Desk, pull: int, text: str, replacing: Replacing) -> None:
    """Let a pull request have one comment of this check, and that be the text."""
    mark, body = marked(desk.mark, text)

    def step() -> bool:
        comments = _find_ours(desk, pull)
        if not comments:
            if replacing is Replacing.ANY:
                desk.repository.create_comment(pull, body)
            return replacing is not Replacing.ANY
        (first, known), *others = comments
        is_ours_the_newest = not any(each.is_newer_than(mark) for _, each in comments)
        if replacing is Replacing.STALE and _is_another_run_of(known, mark):
            return True
        try:
            if is_ours_the_newest and known != mark:
                desk.repository.update_comment(pull, first.number, body)
            elif others and (is_ours_the_newest or known.is_newer_than(mark)):
                desk.repository.delete_comment(pull, others[0][0].number)
            else:
                return True
        except GoneError:
            pass  # somebody has deleted it: the next look sees
        return False

    desk.patience.settle(step)


def start_check(desk: Desk, said: Said) -> None:
    """Let the commit have a check run of this attempt that is in progress.

    Where another run of the same commit has a verdict, or works on one, that stays what is shown:
    whether this one is to measure at all is not known yet.
    """

    def step() -> bool:
        for check, known in _find_checks(desk):
            is_of_another = _is_another_run_of(known, desk.mark)
            if is_of_another and check.conclusion not in _WITHOUT_VERDICT:
                return True
            if not desk.mark.is_newer_than(known):
                return True
        _create_check(desk, said)
        return False

    desk.patience.settle(step)


def complete_check(
    desk: Desk, conclusion: Conclusion, said: Said, annotations: Sequence[dict[str, Any]] = ()
) -> None:
    """Let the commit have a check run of this attempt that is completed so.

    Where a newer attempt has one already, that of this attempt only ends: SupersededError.
    """
    sent = 0

    def step() -> bool:
        nonlocal sent
        checks = _find_checks(desk)
        own = [each for each, known in checks if known.is_of_the_attempt_of(desk.mark)]
        if any(each.order > desk.mark.order for _, each in checks):
            if _end_superseded(desk, own):
                raise SupersededError
            return False
        if not own:
            _create_check(desk, said)
            return False
        # Two jobs at once may have begun two: none of them may stay in progress.
        for each in own:
            if (each.status, each.conclusion) != ("completed", conclusion):
                _complete(desk, each, conclusion, said)
                return False
        shown = max(own, key=lambda check: check.number)
        sent = max(sent, shown.annotations)
        if sent >= len(annotations):
            return True
        page = annotations[sent : sent + _ANNOTATIONS_A_CALL]
        desk.repository.annotate_check_run(
            shown.number, title=said.title, summary=said.summary, annotations=page
        )
        sent += len(page)
        return sent >= len(annotations)

    desk.patience.settle(step)


def withdraw_check(desk: Desk, said: Said) -> None:
    """End the check run of this attempt, if there is one, as one that had nothing to say."""

    def step() -> bool:
        for own, known in _find_checks(desk):
            if known.is_of_the_attempt_of(desk.mark) and own.status != "completed":
                _complete(desk, own, Conclusion.SKIPPED, said)
                return False
        return True

    desk.patience.settle(step)


def _find_ours(desk: Desk, pull: int) -> list[tuple[Comment, Mark]]:
    """The comments of this check by this account, the oldest first. Anybody can write a mark."""
    author = desk.repository.own_number
    found = []
    for each in sorted(desk.repository.list_comments(pull), key=lambda comment: comment.number):
        known = read_mark(each.body) if each.author == author else None
        if known is not None and known.check == desk.mark.check:
            found.append((each, known))
    return found


def _find_checks(desk: Desk) -> list[tuple[CheckRun, Mark]]:
    checks = desk.repository.list_check_runs(desk.mark.head, desk.mark.check)
    marks = [(each, read_id(each.external_id)) for each in checks]
    return [(each, mark) for each, mark in marks if mark is not None]


def _is_another_run_of(known: Mark, mark: Mark) -> bool:
    return known.head == mark.head and known.run_id != mark.run_id


def _create_check(desk: Desk, said: Said) -> None:
    desk.repository.create_check_run(
        desk.mark.head,
        desk.mark.check,
        external_id=write_id(desk.mark),
        details_url=desk.details_url,
        title=said.title,
        summary=said.summary,
    )


def _complete(desk: Desk, check: CheckRun, conclusion: Conclusion, said: Said) -> None:
    desk.repository.complete_check_run(
        check.number, conclusion=conclusion.value, title=said.title, summary=said.summary
    )


def _end_superseded(desk: Desk, own: Sequence[CheckRun]) -> bool:
    """End check runs as of their start, so that none counts as the latest; whether all have."""
    for each in own:
        if each.status != "completed":
            desk.repository.complete_check_run(
                each.number,
                conclusion=Conclusion.CANCELLED.value,
                title="superseded",
                summary="A newer attempt has begun; its check run has the verdict.",
                completed_at=datetime.fromisoformat(desk.mark.started_at),
            )
            return False
    return True
