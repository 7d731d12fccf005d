"""What is said on GitHub of an attempt when it begins and when it has ended.

The verdict is not GitHub's to change: what it does not take is a line for whoever reads the log.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from perfci import units
from perfci.ci.act import Act
from perfci.ci.annotations import annotate
from perfci.ci.attempt import Attempt
from perfci.ci.change import find_touched
from perfci.ci.comment import LONGEST_BYTES, Place, write_markdown, write_title
from perfci.ci.conclusion import Conclusion, conclude
from perfci.ci.github import ChangedFile, Pull, Repository
from perfci.ci.mark import Mark
from perfci.ci.merging import Found, Ruling
from perfci.ci.patience import Answer, Patience, RefusedError, UnavailableError
from perfci.ci.posting import (
    Desk,
    Replacing,
    Said,
    SupersededError,
    complete_check,
    post_comment,
    start_check,
    withdraw_check,
)
from perfci.ci.settings import CiSettings
from perfci.ci.trust import Fork, rule
from perfci.ci.verdict_file import VerdictFile
from perfci.errors import ExitCode
from perfci.reports.markdown import escape

_MOST_FILES = 3_000
"""GitHub lists no more of a pull request: of a longer list any file may be touched."""

_STARTED_WITHIN = timedelta(minutes=1)
"""How long after a label was put on GitHub starts the run that is for it, at the most."""

_RIGHTS = {
    "check run": "checks: write",
    "comment": "pull-requests: write",
    "annotations": "checks: write and pull-requests: read",
    "pull request": "pull-requests: read",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The project of which is reported: the name of its check, its settings, and where it lies.

    ``kernels`` and ``folder`` are folders from the top of the repository, ``environment`` are files
    in ``folder`` by which its environment is made.
    """

    check: str
    settings: CiSettings
    kernels: str
    folder: str
    environment: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class Reporter:
    """Says on GitHub what is to be said of one attempt.

    ``complain`` is told, in a line each, what GitHub does not take.
    """

    repository: Repository
    patience: Patience
    attempt: Attempt
    project: Project
    complain: Callable[[str], None]

    def start(self) -> None:
        """Say that a verdict is being worked on, so that none of an earlier attempt is shown."""
        attempt = self.attempt
        what = f"Attempt {attempt.attempt} at `{units.shorten_sha(attempt.head)}` is being measured"
        text = f"### … {escape(self.project.check)}: measuring\n\n[{what}]({attempt.url}).\n"
        said = Said(title="measuring", summary=text)
        desk = self._desk(is_ended=False)
        self._try("check run", lambda: start_check(desk, said), None)
        pull = next(iter(self._find_pulls()), None)
        self._comment(desk, pull, text, Replacing.STALE)

    def end(self, claim: VerdictFile | None, found: Found) -> Ruling:
        """Say what it has come to, of what the runners and the workflow itself have handed over."""
        pulls = self._find_pulls()
        pull = next(iter(pulls), None)
        ruling = rule(self.attempt, claim, found, self.project.settings, self._look_at_fork(pulls))
        with contextlib.suppress(SupersededError):  # the newer attempt says the rest
            self._say(ruling, pull)
        return ruling

    def write(self, ruling: Ruling, longest_bytes: int) -> str:
        """The ruling in Markdown."""
        place = Place(check=self.project.check, url=self.attempt.url)
        return write_markdown(ruling, place, longest_bytes=longest_bytes)

    def _say(self, ruling: Ruling, pull: Pull | None) -> None:
        """Say a ruling in check run, comment and annotations. Raises SupersededError."""
        said = Said(title=write_title(ruling), summary=self.write(ruling, LONGEST_BYTES))
        is_shown = self._try("check run", lambda: self._end_check(ruling, said), False)  # noqa: FBT003
        replacing = Replacing.STALE if ruling.act is Act.NOTHING else Replacing.ANY
        self._comment(self._desk(is_ended=True), pull, said.summary, replacing)
        if is_shown and pull is not None and ruling.exit_code != ExitCode.FINE:
            self._try("annotations", lambda: self._annotate(pull, ruling, said), None)

    def _desk(self, *, is_ended: bool) -> Desk:
        attempt = self.attempt
        mark = Mark(
            check=self.project.check,
            head=attempt.head,
            run_id=attempt.run_id,
            attempt=attempt.attempt,
            started_at=attempt.started_at,
            is_ended=is_ended,
        )
        return Desk(
            repository=self.repository,
            patience=self.patience,
            mark=mark,
            details_url=attempt.url,
        )

    def _find_pulls(self) -> list[Pull]:
        """The open pull requests of this attempt whose head is still what was measured.

        It is of the first one; another can only be for another branch.
        """
        attempt = self.attempt
        if attempt.kind != "pull_request" or attempt.head_repository is None:
            return []
        pulls: list[Pull] = self._try(
            "pull request", lambda: self.patience.ask(self._list_pulls), []
        )
        wanted = attempt.head, attempt.head_repository
        fitting = [each for each in pulls if (each.head, each.head_repository) == wanted]
        return sorted(fitting, key=lambda each: each.number)

    def _list_pulls(self) -> list[Pull]:
        """The open pull requests that this attempt may be of; of a fork all that there are."""
        attempt = self.attempt
        if attempt.pulls and not attempt.is_fork:
            return self.repository.list_open(attempt.pulls)
        owner = (attempt.head_repository or "").partition("/")[0]
        return self.repository.list_pulls(owner, attempt.branch)

    def _look_at_fork(self, pulls: Sequence[Pull]) -> Fork | None:
        """What GitHub says of a fork's code; where it says nothing, the worst is assumed.

        Of several pull requests of one commit the check is the same, so that what any touches is.
        """
        if not self.attempt.is_fork:
            return None
        stranger = Fork(is_approved=False, is_touched=True)
        if not pulls:
            return stranger
        found = self._try(
            "pull request",
            lambda: Fork(
                is_approved=any(self._is_approved(each) for each in pulls),
                is_touched=any(self._is_touched(each) for each in pulls),
            ),
            stranger,
        )
        # What was listed is another commit's where one was pushed meanwhile.
        still_there = [each.number for each in self._find_pulls()]
        return found if still_there == [each.number for each in pulls] else stranger

    def _is_approved(self, pull: Pull) -> bool:
        """Whether this run is the one that putting the label on has started.

        A label that is still there from an earlier commit approves nothing, nor does one that is
        put on while somebody else pushes another commit.
        """
        label, actor = self.project.settings.approval_label, self.attempt.actor
        found = self.patience.ask(lambda: self.repository.list_labellings(pull.number, label))
        created_at = datetime.fromisoformat(self.attempt.created_at)
        own = [each.at for each in found if actor is not None and each.actor == actor]
        return any(timedelta() <= created_at - each <= _STARTED_WITHIN for each in own)

    def _is_touched(self, pull: Pull) -> bool:
        """Whether a gate is for what the pull request changes, as a plan would have it."""
        if self.project.settings.gate_label in pull.labels:
            return True
        files = self._ask_for_files(pull)
        paths = [path for each in files for path in (each.path, each.former_path) if path]
        project = self.project
        touched = find_touched(
            paths, kernels=project.kernels, project=project.folder, named=project.environment
        )
        return touched is not None or len(files) >= _MOST_FILES

    def _ask_for_files(self, pull: Pull) -> list[ChangedFile]:
        return self.patience.ask(lambda: self.repository.list_changed_files(pull.number))

    def _comment(self, desk: Desk, pull: Pull | None, text: str, replacing: Replacing) -> None:
        if pull is not None:
            number = pull.number
            self._try("comment", lambda: post_comment(desk, number, text, replacing), None)

    def _end_check(self, ruling: Ruling, said: Said) -> bool:
        """End the check run; whether it says a verdict."""
        conclusion = self._conclude(ruling)
        if conclusion is Conclusion.SKIPPED:
            withdraw_check(self._desk(is_ended=True), said)
            return False
        complete_check(self._desk(is_ended=True), conclusion, said)
        return True

    def _conclude(self, ruling: Ruling) -> Conclusion:
        """How the check ends; a runner of a cancelled run is not to blame for its silence."""
        is_cancelled = self.attempt.conclusion == "cancelled" and bool(ruling.missing)
        return Conclusion.CANCELLED if is_cancelled else conclude(ruling)

    def _annotate(self, pull: Pull, ruling: Ruling, said: Said) -> None:
        changed = [(each.path, each.patch) for each in self._ask_for_files(pull)]
        notes = annotate(ruling, changed, kernels=self.project.kernels)
        if notes:
            desk = self._desk(is_ended=True)
            complete_check(desk, self._conclude(ruling), said, notes)

    def _try(self, what: str, action: Callable[[], Answer], otherwise: Answer) -> Answer:
        """What an action gives, or something else where GitHub does not take it, which is said."""
        try:
            return action()
        except RefusedError as error:
            right = f"; the job needs '{_RIGHTS[what]}'" if str(error).startswith("403") else ""
            self.complain(f"GitHub refuses the {what} ({error}){right}")
        except UnavailableError as error:
            self.complain(f"GitHub does not take the {what} ({error})")
        return otherwise
