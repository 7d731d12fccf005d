"""What of a change a gate is asked for by: kernels, their environment, the settings."""

from collections.abc import Iterable
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
    listed = run_git(root, "diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", base, head)
    return [each for each in listed.split("\0") if each]


def find_touched(paths: Iterable[str], *, kernels: str, project: str) -> str | None:
    """The first path of a change that a gate is for; None where there is none.

    ``kernels`` and ``project`` are folders from the top of the repository, ``.`` that itself.
    """
    return next((each for each in paths if _matters(PurePosixPath(each), kernels, project)), None)


def _matters(path: PurePosixPath, kernels: str, project: str) -> bool:
    if path.is_relative_to(kernels):
        return True
    beside = path.parent == PurePosixPath(project)
    return beside and any(fnmatchcase(path.name, each) for each in _ENVIRONMENT)
