"""Whether an event may use a runner that is not thrown away afterwards. Pure.

A fork's pull request brings code of a stranger. It is let onto the machine for one commit: the one
that a member looked at and put the label on, as the event of that labelling says. The label that is
still there when the next commit comes says nothing of that one.
"""

from collections.abc import Collection
from dataclasses import dataclass

from perfci.ci.event import Event, Kind, Provider


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Whether, and why or why not."""

    is_admitted: bool
    reason: str


def admit(event: Event, *, label: str, repositories: Collection[str] = ()) -> Admission:
    """Whether an event may use the machine; ``label`` approves one commit of a fork.

    With ``repositories``, only events of these may.
    """
    if repositories and event.repository not in repositories:
        return _refused(f"{event.repository} is none of {', '.join(sorted(repositories))}")
    if event.kind is Kind.WORKFLOW_RUN:
        return _refused("workflow_run reads what others measured, which needs no such machine")
    request = event.pull_request
    if request is None or not request.is_fork:
        return Admission(is_admitted=True, reason=f"code of {event.repository} itself")
    source = request.head_repository or "a repository that is gone"
    sha = (event.head or "")[:10]
    if event.provider is not Provider.GITHUB:
        return _refused(
            f"code of the fork {source}: {event.provider} does not say who approved {sha}; bring "
            "it onto a branch of this repository"
        )
    if request.action == "labeled" and request.label == label:
        return Admission(is_admitted=True, reason=f"{sha} of {source} was approved by '{label}'")
    return _refused(
        f"code of the fork {source}: look at {sha}, then put the label '{label}' on (anew, where "
        "it is on already); it counts for that commit alone"
    )


def _refused(reason: str) -> Admission:
    return Admission(is_admitted=False, reason=reason)
