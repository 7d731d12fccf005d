"""From a place in git to a Run: what to measure, and under which commit it is filed."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from perfci import __version__
from perfci.config import Config
from perfci.errors import ConfigurationError, UsageError
from perfci.history import commits
from perfci.history.model import Commit, Environment, Run
from perfci.history.text import one_line
from perfci.kernel import Kernel, discover
from perfci.run import Measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Kernels as they are at a commit; they lie in ``kernels`` while the subject is used."""

    commit: Commit
    kernels: tuple[Kernel, ...]


def here(config: Config, sha: str | None) -> Subject:
    """The kernels of the working tree, filed under HEAD and what the tree adds to it.

    Outside of a repository ``sha`` says which commit this is. Raises UsageError without it.
    """
    where = config.kernels if config.kernels.is_dir() else config.root
    root = commits.repository_root(where)
    if root is None:
        if sha is None:
            raise UsageError(
                f"{one_line(str(where))} is in no git repository: "
                "say which commit this is with --commit SHA"
            )
        commit = commits.explicit_commit(sha)
    else:
        commit = commits.head(root)
    return Subject(commit=commit, kernels=tuple(discover(config.kernels)))


@contextmanager
def at_commit(config: Config, root: Path, sha: str, *, own_cases: bool) -> Iterator[Subject]:
    """The kernels of another commit, in a temporary worktree.

    References and cases are those of the working tree, so that all commits are judged alike;
    with ``own_cases`` those of the commit. Raises ConfigurationError where the commit has no
    kernels.
    """
    try:
        inside = config.kernels.relative_to(root)
    except ValueError:
        raise ConfigurationError(
            f"{config.kernels} is outside of {root}: its history cannot be measured"
        ) from None
    with commits.worktree(root, sha) as tree:
        workloads = None if own_cases else config.kernels
        kernels = tuple(discover(tree / inside, workloads=workloads))
        yield Subject(commit=commits.read_commit(root, sha), kernels=kernels)


def assemble(
    subject: Subject,
    measured: Measured,
    environment: Environment,
    *,
    run_id: str,
    started_at: datetime,
    trigger: str,
    attempt: int,
    pair: str = "",
) -> Run:
    """The record of what was measured; runs that were measured together share a ``pair``."""
    return Run(
        run_id=run_id,
        commit=subject.commit,
        environment=environment,
        started_at=started_at,
        duration_s=measured.duration_s,
        trigger=trigger,
        attempt=attempt,
        perfci_version=__version__,
        pair=pair,
        measurements=measured.measurements,
    )


def new_id(started_at: datetime) -> str:
    """An id that no other run has."""
    return f"{started_at:%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"
