"""Temporary worktrees that a process which was killed has left in a repository.

Each lies in a folder of its own among the temporary files, held for as long as its process lives.
"""

import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import gettempdir

from perfci.history.errors import CommitError
from perfci.history.git import ask_git, run_git
from perfci.history.hold import unheld

PREFIX = "perfci-"
"""What the name of a temporary folder begins with."""
_FOLDER = re.compile(rf"{PREFIX}[a-z0-9_]{{8}}")
_TREE = re.compile(r"[0-9a-f]{12}")
_LISTED = "worktree "


def remove_worktree(root: Path, tree: Path) -> bool:
    """Whether git has forgotten a worktree, and removed what there was of it.

    It goes by its own path, since `git worktree prune` would also forget other people's trees that
    happen to be out of reach.
    """
    return ask_git(root, "worktree", "remove", "--force", "--force", str(tree)).status == 0


def remove_left(root: Path) -> None:
    """Remove the worktrees of a repository whose processes are gone, as far as that can be done."""
    with suppress(OSError, CommitError):
        for tree in _find_own(root):
            with unheld(tree.parent) as is_unheld:
                if is_unheld:
                    # Git would follow a link, and removes no tree that it never came to complete.
                    shutil.rmtree(tree, ignore_errors=True)
                    if not os.path.lexists(tree) and remove_worktree(root, tree):
                        shutil.rmtree(tree.parent, ignore_errors=True)


def _find_own(root: Path) -> Iterator[Path]:
    """The worktrees of a repository that lie where perfci puts them, in folders of this user."""
    place = Path(gettempdir()).resolve()
    for line in run_git(root, "worktree", "list", "--porcelain").split("\n"):
        tree = Path(line.removeprefix(_LISTED))
        folder = tree.parent
        if (
            line.startswith(_LISTED)
            and folder.parent == place
            and _FOLDER.fullmatch(folder.name)
            and _TREE.fullmatch(tree.name)
            and _is_own(folder)
        ):
            yield tree


def _is_own(folder: Path) -> bool:
    """Whether a path is a folder of this user, and no link to one."""
    with suppress(OSError):
        found = folder.lstat()
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return False
