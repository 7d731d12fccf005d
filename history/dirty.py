"""The difference between a working tree and its commit, as a digest."""

import hashlib
import os
import stat
from pathlib import Path

from perfci.history.errors import CommitError
from perfci.history.git import ask_git, run_git

_PATH_FIELD = {"1": 8, "u": 10, "?": 1}
"""Kind of an entry of ``git status --porcelain=v2`` → how many fields stand before its path."""


def tree_difference(root: Path) -> str | None:
    """Sixteen hexadecimal digits for the difference of a working tree from HEAD; None if clean.

    What counts is what lies in the tree now: the contents, kinds and executable bits of files
    that are changed, deleted or new (and not ignored), whether they are staged or not. The same
    difference has the same digest on every machine. Raises CommitError where git fails.
    """
    paths = _changed_paths(root)
    if not paths:
        return None
    digest = hashlib.sha256()
    for path in sorted(paths):
        entry = os.fsencode(path), os.fsencode(_content(root / path))
        digest.update(b"\0".join(entry) + b"\0")
    return digest.hexdigest()[:16]


def _changed_paths(root: Path) -> set[str]:
    listing = run_git(
        root,
        "status",
        "--porcelain=v2",
        "-z",
        "--untracked-files=all",
        "--ignore-submodules=none",
        "--no-renames",
    )
    entries = [entry for entry in listing.split("\0") if entry]
    return {entry.split(" ", _PATH_FIELD[entry[0]])[-1].rstrip("/") for entry in entries}


def _content(path: Path) -> str:
    """What lies at a path, in one line that differs where the content does."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return f"link {path.readlink()}"
        if stat.S_ISDIR(mode):
            return f"repository {_nested_repository(path)}"
        if not stat.S_ISREG(mode):
            return "special file"
        with path.open("rb") as file:
            kind = "program" if mode & stat.S_IXUSR else "file"
            return f"{kind} {hashlib.file_digest(file, 'sha256').hexdigest()}"
    except (FileNotFoundError, NotADirectoryError):
        return "deleted"
    except (OSError, CommitError):
        return "unreadable"


def _nested_repository(path: Path) -> str:
    """The commit and the difference of a submodule or of a repository inside this one."""
    if not (path / ".git").exists():
        return "empty"
    commit = ask_git(path, "rev-parse", "--verify", "--quiet", "HEAD").output
    return f"{commit} {tree_difference(path)}"
