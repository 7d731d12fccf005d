"""What a provider of continuous integration was asked to act on, whichever provider it is.

What an event says comes from outside: SHAs are checked to be some, names are bounded text, and none
of it is ever handed to a shell.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from perfci.history.text import is_safe

_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.ASCII)
_LONGEST_NAME = 1000


class Provider(StrEnum):
    """Who says what is to be done; plain is a cron job or a shell."""

    GITHUB = "github"
    GITLAB = "gitlab"
    PLAIN = "plain"


class Kind(StrEnum):
    """What has happened."""

    PUSH = "push"
    TAG = "tag"
    DELETION = "deletion"
    PULL_REQUEST = "pull_request"
    MERGE_GROUP = "merge_group"
    SCHEDULE = "schedule"
    DISPATCH = "dispatch"
    WORKFLOW_RUN = "workflow_run"


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    """A pull (or merge) request, at one of its head commits, which is the event's head.

    ``action`` is what was done to it, such as ``opened``, ``synchronize`` or ``labeled``, and
    ``label`` the one that was put on by this very event. ``head_repository`` is None where it is
    gone, which counts as a fork.
    """

    number: int
    action: str
    base_branch: str
    head_repository: str | None
    is_fork: bool
    labels: tuple[str, ...] = ()
    label: str | None = None

    def __post_init__(self) -> None:
        if self.number < 1:
            raise ValueError(f"a pull request has a number above 0, not {self.number}")
        names = (self.action, self.base_branch, self.head_repository, self.label, *self.labels)
        _require_names(names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event, validated.

    ``head`` is the commit to look at, of a pull request its own head and not a merge of it; None
    for a branch that was deleted. ``base`` is what the event itself says came before: of a push the
    former tip, of a pull request the tip of the branch that it is for; None where there is none, as
    for a new branch. ``is_forced`` says that the former tip was thrown away. ``ref`` is a full name
    such as ``refs/heads/main``. ``run_id`` and ``attempt`` are the provider's number of the
    pipeline and of its repetition; of a workflow_run event those of the run that it tells of, and
    ``action`` is then ``requested``, ``in_progress`` or ``completed``. ``inputs`` are what was
    filled in by hand.
    """

    provider: Provider
    kind: Kind
    repository: str
    ref: str
    default_branch: str
    head: str | None
    base: str | None = None
    is_forced: bool = False
    action: str = ""
    run_id: str = ""
    attempt: int = 1
    pull_request: PullRequest | None = None
    inputs: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if (self.head is None) != (self.kind is Kind.DELETION):
            raise ValueError(f"a {self.kind} event {'has' if self.head else 'lacks'} a head commit")
        for sha in (self.head, self.base):
            if sha is not None:
                require_sha(sha)
        if (self.pull_request is None) != (self.kind is not Kind.PULL_REQUEST):
            raise ValueError(f"a {self.kind} event with no pull request, or one without its kind")
        if self.attempt < 1:
            raise ValueError(f"attempt {self.attempt}: the first one is 1")
        words = (word for pair in self.inputs for word in pair)
        texts = (self.repository, self.ref, self.default_branch, self.action, self.run_id)
        _require_names((*texts, *words))

    @property
    def branch(self) -> str | None:
        """The branch that the ref names, if it is one."""
        name = self.ref.removeprefix("refs/heads/")
        return None if name == self.ref else name

    @property
    def is_default_branch(self) -> bool:
        """Whether it is about the branch that others are merged into."""
        return self.branch == self.default_branch

    def asked(self, name: str) -> str:
        """What was filled in under a name; empty where nothing was."""
        return dict(self.inputs).get(name, "")


def require_sha(text: str) -> str:
    """The full SHA that a text is. Raises ValueError where it is none, or the one of nothing."""
    if not _SHA.fullmatch(text) or not text.strip("0"):
        raise ValueError(f"{text[:80]!r} is no commit: 40 or 64 lower-case hexadecimal digits")
    return text


def _require_names(names: tuple[str | None, ...]) -> None:
    for each in names:
        if each is not None and (len(each) > _LONGEST_NAME or "\n" in each or not is_safe(each)):
            raise ValueError(f"{each[:60]!r} is no name: one printable line, {_LONGEST_NAME} long")
