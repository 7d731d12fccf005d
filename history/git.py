"""Git's plumbing, run without prompts, pagers, hooks or a locale of its own.

GitPython runs the commands. Where it is not installed, as on a machine that only measures, the
same commands run by themselves; nothing else here knows the difference.
"""

import os
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from perfci.history.errors import CommitError
from perfci.history.text import one_line

_ENVIRONMENT = {
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LANGUAGE": "C",
    "LC_ALL": "C",
}
_ELSEWHERE = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CEILING_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
)
"""Variables by which git looks elsewhere than in the folder it is given; its hooks set them."""
_NOT_INSTALLED = "git is not installed: install it, or name the commit by hand"
_NOT_FOUND = 127
"""What ``env`` exits with where there is no such program."""
_OPTIONS = ("--no-pager", "-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false")


@dataclass(frozen=True, slots=True, kw_only=True)
class GitAnswer:
    """How a git command ended; ``output`` keeps bytes that are not UTF-8 as lone surrogates."""

    status: int
    output: str
    complaint: str


def ask_git(
    root: Path,
    *arguments: str,
    variables: Mapping[str, str] | None = None,
    reads: Path | None = None,
) -> GitAnswer:
    """Run a git command in a folder, whatever its exit status.

    ``variables`` are added to its environment; ``reads`` is a file that it reads as its standard
    input, of which it has none otherwise. Raises CommitError where git itself cannot be run.
    """
    if any("\0" in each for each in arguments):
        raise CommitError("git takes no NUL character in its arguments")
    try:
        status, output, complaint = _execute(
            [*_without_elsewhere(), "git", "-C", str(root), *_OPTIONS, *arguments],
            {**_ENVIRONMENT, **(variables or {})},
            reads,
        )
    except FileNotFoundError:
        raise CommitError(_NOT_INSTALLED) from None
    except OSError as error:
        raise CommitError(f"git cannot be run: {error.strerror}") from None
    if status == _NOT_FOUND:
        raise CommitError(_NOT_INSTALLED)
    return GitAnswer(
        status=status,
        output=output.decode("utf-8", "surrogateescape").removesuffix("\n"),
        complaint=one_line(complaint.decode("utf-8", "replace")),
    )


def run_git(root: Path, *arguments: str) -> str:
    """The output of a git command in a folder, without the last newline.

    Raises CommitError with git's complaint where the command fails.
    """
    answer = ask_git(root, *arguments)
    if answer.status != 0:
        complaint = answer.complaint or f"exit status {answer.status}"
        raise CommitError(f"git {arguments[0]} in {one_line(str(root))}: {complaint}")
    return answer.output


def _without_elsewhere() -> list[str]:
    """The beginning of a command that takes the variables away, where there are any.

    GitPython adds to the variables of a command and cannot take one away.
    """
    found = [name for name in _ELSEWHERE if name in os.environ]
    return ["env", *(f"--unset={name}" for name in found)] if found else []


def _execute(
    command: list[str], variables: dict[str, str], reads: Path | None
) -> tuple[int, bytes, bytes]:
    """Exit status, output and complaints of a command."""
    with ExitStack() as stack:
        fed = subprocess.DEVNULL if reads is None else stack.enter_context(reads.open("rb"))
        try:
            import git  # noqa: PLC0415 - may not be installed, and takes its time to import
        except ImportError:
            ended = subprocess.run(
                command,
                env=os.environ | variables,
                stdin=fed,
                capture_output=True,
                check=False,
            )
            return ended.returncode, ended.stdout, ended.stderr
        try:
            status, output, complaint = git.cmd.Git().execute(
                command,
                env=variables,
                istream=fed,
                with_extended_output=True,
                with_exceptions=False,
                stdout_as_string=False,
                strip_newline_in_stdout=False,
                shell=False,
            )
        except git.exc.GitCommandNotFound:
            raise FileNotFoundError(command[0]) from None
        return status, output, complaint.encode("utf-8", "replace")
