"""What of all that a measured workflow hands over is believed. Pure.

It is all written by the code that was measured, or beside it. That of the repository's own branches
is trusted code: its word counts. A fork's can say anything, so that only what GitHub itself says
(the commit, the attempt, the labels, the files) decides whether its parcels count at all.
"""

from dataclasses import dataclass

from perfci.ci.act import Act
from perfci.ci.attempt import Attempt
from perfci.ci.merging import Expected, Found, Ruling, merge
from perfci.ci.settings import CiSettings
from perfci.ci.verdict_file import VerdictFile

ACTS = {"pull_request": Act.GATE, "merge_group": Act.GATE, "push": Act.RUN}
"""The events of which there is a check, and what is measured for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """What GitHub says of a fork's code: whether this run was approved, and touches kernels."""

    is_approved: bool
    is_touched: bool


def rule(
    attempt: Attempt,
    claim: VerdictFile | None,
    found: Found,
    settings: CiSettings,
    fork: Fork | None,
) -> Ruling:
    """The ruling over an attempt; ``claim`` is what its workflow says itself, if it says anything.

    ``fork`` is None if and only if the code is the repository's own.
    """
    if claim is not None and not is_about(claim, attempt):
        claim = None
    if fork is not None:
        return _rule_of_fork(attempt, claim, found, settings, fork)
    if claim is not None and claim.act is Act.NOTHING:
        return _nothing(attempt, claim.reason, is_admitted=claim.is_admitted)
    runners = tuple(each.runner for each in claim.runners) if claim else ()
    expected = _expected(attempt, runners or settings.runners)
    return merge(expected, found, reason=claim.reason if claim else "")


def _rule_of_fork(
    attempt: Attempt,
    claim: VerdictFile | None,
    found: Found,
    settings: CiSettings,
    fork: Fork,
) -> Ruling:
    was_let_in = bool(found.parcels) or claim is None or claim.is_admitted
    if fork.is_approved and (found.parcels or (fork.is_touched and was_let_in)):
        reason = f"code of the fork {attempt.head_repository}, approved by a label"
        return merge(_expected(attempt, settings.runners), found, reason=reason)
    if not fork.is_touched:
        reason = "no kernel, environment or setting is touched"
        return _nothing(attempt, reason, is_admitted=True)
    reason = (
        f"code of the fork {attempt.head_repository}: look at {attempt.head[:10]}, then put the "
        f"label '{settings.approval_label}' on (anew, where it is on already)"
    )
    notes = tuple(f"{each.runner} has reported without approval" for each in found.parcels)
    return _nothing(attempt, reason, is_admitted=False, notes=notes)


def is_about(claim: VerdictFile, attempt: Attempt) -> bool:
    """Whether a workflow's word is about this attempt, and not of another one's artefacts."""
    known = (claim.head, claim.run_id, claim.attempt)
    return known == (attempt.head, str(attempt.run_id), attempt.attempt)


def _expected(attempt: Attempt, runners: tuple[str, ...]) -> Expected:
    return Expected(
        act=ACTS.get(attempt.kind, Act.RUN),
        head=attempt.head,
        run_id=str(attempt.run_id),
        attempt=attempt.attempt,
        runners=runners,
    )


def _nothing(
    attempt: Attempt, reason: str, *, is_admitted: bool, notes: tuple[str, ...] = ()
) -> Ruling:
    return Ruling(
        act=Act.NOTHING,
        reason=reason,
        head=attempt.head,
        run_id=str(attempt.run_id),
        attempt=attempt.attempt,
        is_admitted=is_admitted,
        notes=notes,
    )
