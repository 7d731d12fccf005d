"""Repositories with one bad commit among many, made by hand, merges included."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import scratch

COUNT = 100_000
"""How far the good variant counts before its work, which takes most of its time."""


def spin(count: int, note: str = "") -> str:
    """A C variant that is slower the more it counts; a ``note`` is a comment in it."""
    text = scratch.body(f"for (volatile int i = 0; i < {count}; i = i + 1) {{}}")
    return f"// {note}\n{text}" if note else text


def other(number: int) -> str:
    """The good variant in other code that is as fast, another one for each number."""
    return f"static const volatile int number = {number};\n" + spin(COUNT).replace(
        "return 0;", "return number - number;"
    )


def start(root: Path, **files: str) -> Path:
    """A repository with one kernel, not committed yet; the variant is ``plain``."""
    scratch.quick(root)
    scratch.write_kernel(root, **{"plain__cpp": spin(COUNT), **files})
    (root / ".gitignore").write_text(".perfci/\n")
    scratch.git(root, "init", "-q")
    return root


def commit(root: Path, subject: str, text: str | None = None, name: str = "plain.cpp") -> str:
    """Commit the variant as another text (or nothing at all); returns the SHA."""
    if text is not None:
        (root / "kernels/axpb" / name).write_text(text)
    return scratch.commit_all(root, subject)


def merge(root: Path, branch: str, subject: str) -> str:
    """Merge a branch with a commit of its own; returns the SHA."""
    scratch.git(root, "merge", "-q", "--no-ff", "-m", subject, branch)
    return scratch.git(root, "rev-parse", "HEAD")


def sweep(root: Path) -> None:
    """Remove the working trees that a killed program has left."""
    listing = scratch.git(root, "worktree", "list", "--porcelain").splitlines()
    trees = [Path(line.split(" ", 1)[1]) for line in listing if line.startswith("worktree ")]
    for tree in trees[1:]:
        scratch.git(root, "worktree", "remove", "--force", "--force", str(tree))
        shutil.rmtree(tree.parent, ignore_errors=True)


def state(root: Path) -> Sequence[str]:
    """What a bisection must not touch: index, refs, what is checked out, and the tree."""
    return (
        scratch.git(root, "for-each-ref"),
        scratch.git(root, "symbolic-ref", "-q", "HEAD"),
        scratch.git(root, "status", "--porcelain"),
        scratch.git(root, "worktree", "list"),
        scratch.git(root, "ls-files", "--stage"),
    )
