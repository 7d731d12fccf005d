"""What of a change a gate is asked for by: kernels, their environment, the settings."""

from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from perfci.gate.baselines import FILE as BASELINES
from perfci.history.git import run_git

_ENVIRONMENT = (
    BASELINES,
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "requirements*.txt",
    "constraints*.txt",
    "environment*.yml",
    "environment*.yaml",
    "*.lock",
    "pixi.toml",
)
"""Files in the project's root that decide in what kernels run, or by what they are judged."""


def find_changed(root: Path, base: str, head: str) -> list[str]:
    """The paths that differ between two commits, from the top of the repository."""
    # Else a head could hide by its .gitmodules that it moves a submodule.
    whole = ("--no-renames", "--no-ext-diff", "--ignore-submodules=none")
    listed = run_git(root, "diff", "--name-only", *whole, "-z", base, head)
    return [each for each in listed.split("\0") if each]


def find_touched(
    paths: Iterable[str], *, kernels: str, project: str, named: Iterable[str] = ()
) -> str | None:
    """The first path of a change that a gate is for; None where there is none.

    ``kernels`` and ``project`` are folders from the top of the repository, ``.`` that itself.
    ``named`` are files of the project by which its environment is made, wherever they are in it.
    """
    others = {PurePosixPath(project) / each for each in named}
    return next(
        (each for each in paths if _matters(PurePosixPath(each), kernels, project, others)), None
    )


def _matters(
    path: PurePosixPath, kernels: str, project: str, others: Collection[PurePosixPath]
) -> bool:
    if path.is_relative_to(kernels) or path in others:
        return True
    beside = path.parent == PurePosixPath(project)
    return beside and any(fnmatchcase(path.name, each) for each in _ENVIRONMENT)
