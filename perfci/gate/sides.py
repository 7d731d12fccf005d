"""Two commits as they lie on disk while one is judged by the other's rules.

The base's references, cases and settings judge both. What the head would put in their place is kept
beside them, so that it can be told.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from perfci.config import Config, load_config
from perfci.environments.installation import Installation
from perfci.environments.requirements import Requirements, read_requirements
from perfci.errors import ConfigurationError, PerfciError, UsageError
from perfci.gate.baselines import read_baselines
from perfci.history import commits
from perfci.history.dirty import tree_difference
from perfci.history.errors import CommitError
from perfci.history.model import Commit
from perfci.kernel import Kernel, discover
from perfci.sources import digest_files

_USUAL_BRANCHES = ("main", "master")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """Which commits are compared: full SHAs, and how the base was found.

    Without a ``head`` it is the working tree at HEAD, which differs from it.
    """

    base: str
    head: str | None
    found: str
    branch: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Base and head, checked out.

    ``trees`` are where they lie, ``config`` is the base's, ``proposed_config`` the head's.
    ``contender`` are the head's variants with the base's references and cases, ``proposed`` the
    same with the head's own. ``requirements`` say what environment each side asks for, None that
    it is the one that runs perfci; where they differ ``installations`` are what was made of them,
    and ``environment_change`` says in what. ``pinned`` is the commit that the base has as its
    pinned baseline.
    """

    ends: Ends
    trees: tuple[Path, Path]
    config: Config
    proposed_config: Config
    base_commit: Commit
    head_commit: Commit
    baseline: tuple[Kernel, ...]
    contender: tuple[Kernel, ...]
    proposed: tuple[Kernel, ...]
    requirements: tuple[Requirements | None, Requirements | None]
    pinned: str | None
    installations: tuple[Installation | None, Installation | None] = (None, None)
    environment_change: str = ""


def find_ends(root: Path, config: Config, *, base: str | None, head: str | None) -> Ends:
    """What ``base`` and ``head`` mean: by default the merge base, and what lies in the tree.

    Raises CommitError where git does not know, UsageError where the base is no ancestor of the
    head or both are the same.
    """
    head_sha = commits.resolve(root, head or "HEAD")
    in_tree = head is None and tree_difference(root) is not None
    branch = _default_branch(root, config)
    if base is not None:
        base_sha, found = commits.resolve(root, base), base
        if not commits.is_ancestor(root, base_sha, head_sha):
            common = commits.merge_base(root, base_sha, head_sha)
            if common == head_sha:
                raise UsageError(
                    f"{head or 'HEAD'} is an ancestor of {base}, the older of the two: did you "
                    f"mean --base {head or 'HEAD'} --head {base}?"
                )
            raise UsageError(
                f"{base} is no ancestor of {head or 'HEAD'}, so that what it has beyond their "
                f"merge base would be held against the head; give --base {common[:10]}"
            )
    else:
        against = branch or commits.default_branch(root, _usual_branches(config))
        base_sha = commits.merge_base(root, head_sha, against)
        found = f"merge base of {head or 'HEAD'} and {against}"
    if base_sha == head_sha and not in_tree:
        raise UsageError(
            f"base and head are the same commit {base_sha[:10]} ({found}): nothing to judge; "
            "name an older one with --base"
        )
    return Ends(base=base_sha, head=None if in_tree else head_sha, found=found, branch=branch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """A commit by whose rules others are judged, checked out: its settings and its kernels.

    ``config`` has the places of the project here, but for the kernels, which are in ``tree``.
    ``requirements`` are those of its environment, ``pinned`` is the commit that it names as a
    baseline, if any.
    """

    tree: Path
    config: Config
    kernels: tuple[Kernel, ...]
    requirements: Requirements | None
    pinned: str | None


@contextmanager
def check_out(
    config: Config, root: Path, ends: Ends, *, kernels: Path | None = None
) -> Iterator[Sides]:
    """Both sides in temporary worktrees; only a tree that differs from HEAD stays where it is.

    ``kernels`` is the folder of both where their settings have no say. Raises ConfigurationError
    where files of a side are wrong, UsageError where the tree has changed meanwhile.
    """
    with ExitStack() as stack:
        checked_out = check_out_base(config, root, ends.base, kernels=kernels, name="the base")
        base = stack.enter_context(checked_out)
        head_tree = root
        if ends.head is not None:
            head_tree = stack.enter_context(commits.worktree(root, ends.head))
        with _speaking_of("the head", head_tree):
            head_config = _config_of(config, root, head_tree, kernels)
            proposed = _kernels(head_config.kernels)
            asked = read_requirements(head_config.root, head_config.environment)
            as_begun = _digest(head_config.kernels)
            contender = _judged_by(base, head_config.kernels)
        yield Sides(
            ends=ends,
            trees=(base.tree, head_tree),
            config=base.config,
            proposed_config=head_config,
            base_commit=_commit(root, ends.base, ends.branch),
            head_commit=_head_commit(root, ends),
            baseline=base.kernels,
            contender=contender,
            proposed=proposed,
            requirements=(base.requirements, asked),
            pinned=base.pinned,
        )
        if _digest(head_config.kernels) != as_begun:
            raise UsageError(
                f"{head_config.kernels} has changed while it was measured: nothing of it is "
                "recorded; let it rest, or commit it first"
            )


@contextmanager
def check_out_base(
    config: Config, root: Path, sha: str, *, kernels: Path | None = None, name: str
) -> Iterator[Base]:
    """A commit in a temporary worktree, to judge others by.

    ``kernels`` is their folder where its settings have no say. Raises ConfigurationError, which
    says what is wrong with files of ``name``.
    """
    with commits.worktree(root, sha) as tree:
        with _speaking_of(name, tree):
            own = _config_of(config, root, tree, kernels)
            found = _kernels(own.kernels)
            asked = read_requirements(own.root, own.environment)
            pins = read_baselines(own.root)
        yield Base(
            tree=tree,
            config=replace(own, root=config.root, store=config.store, cache=config.cache),
            kernels=found,
            requirements=asked,
            pinned=pins[-1].commit if pins else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The kernels of a commit with a base's references, cases and rules, and its environment's."""

    kernels: tuple[Kernel, ...]
    requirements: Requirements | None


@contextmanager
def check_out_judged(
    config: Config,
    root: Path,
    sha: str,
    base: Base,
    *,
    kernels: Path | None = None,
    name: str,
) -> Iterator[Judged]:
    """What a commit has to be judged by a base, in a worktree.

    ``kernels`` is their folder where its settings have no say. Raises ConfigurationError, which
    says what is wrong with files of ``name``.
    """
    with commits.worktree(root, sha) as tree:
        with _speaking_of(name, tree):
            own = _config_of(config, root, tree, kernels)
            judged = Judged(
                kernels=_judged_by(base, own.kernels),
                requirements=read_requirements(own.root, own.environment),
            )
        yield judged


def _judged_by(base: Base, folder: Path) -> tuple[Kernel, ...]:
    judged = _kernels(folder, workloads=base.config.kernels)
    return tuple(_under_rules_of(base.kernels, each) for each in judged)


def _usual_branches(config: Config) -> list[str]:
    return list(dict.fromkeys((config.main_branch, *_USUAL_BRANCHES)))


def _default_branch(root: Path, config: Config) -> str | None:
    try:
        return commits.default_branch(root, _usual_branches(config))
    except CommitError:
        return None


def _commit(root: Path, sha: str, branch: str | None) -> Commit:
    """What is recorded of a commit; one that is not merged yet is on no other branch's line."""
    line = None if branch is None else commits.line_of(root, sha, branch)
    return commits.read_commit(root, sha, branch=line)


def _head_commit(root: Path, ends: Ends) -> Commit:
    if ends.head is not None:
        return _commit(root, ends.head, ends.branch)
    commit = _commit(root, commits.resolve(root, "HEAD"), ends.branch)
    return replace(commit, dirty=tree_difference(root))


def _config_of(config: Config, root: Path, tree: Path, kernels: Path | None) -> Config:
    """The configuration of another checkout, in the folder that is the project's root here.

    Its kernels are its own, wherever the setting for this one points to.
    """
    inside = config.root.relative_to(root) if config.root.is_relative_to(root) else Path()
    at = tree / inside
    while not at.is_dir():
        at = at.parent
    own = load_config(at, top=tree, kernels=kernels)
    if own.kernels.is_relative_to(tree.resolve()):
        return own
    if own.kernels.is_relative_to(root):
        return replace(own, kernels=tree / own.kernels.relative_to(root))
    raise ConfigurationError(f"{own.kernels} is outside of {root}: it has no commits to compare")


def _digest(folder: Path) -> str:
    """A digest of all that lies in a folder, compiled Python aside."""
    files = sorted(each for each in folder.rglob("*") if each.is_file() and each.suffix != ".pyc")
    names = [str(each.relative_to(folder)) for each in files]
    return hashlib.sha256(repr([names, digest_files(files)]).encode()).hexdigest()


def _kernels(folder: Path, *, workloads: Path | None = None) -> tuple[Kernel, ...]:
    """The kernels under a folder; a side without the folder has none, and so no workloads."""
    if not folder.is_dir() or not (workloads or folder).is_dir():
        return ()
    return tuple(discover(folder, workloads=workloads))


def _under_rules_of(baseline: Sequence[Kernel], kernel: Kernel) -> Kernel:
    """A kernel of the head whose variants may no more than those that the base has."""
    known = {variant.key: variant.declaration for each in baseline for variant in each.variants}
    variants = []
    for each in kernel.variants:
        rules = known.get(each.key)
        if rules is not None:
            declaration = replace(
                each.declaration,
                peer=rules.peer,
                tf32=rules.tf32,
                nondeterministic=rules.nondeterministic,
                tolerance=rules.tolerance,
            )
            each = replace(each, declaration=declaration)  # noqa: PLW2901
        variants.append(each)
    return replace(kernel, variants=tuple(variants))


@contextmanager
def _speaking_of(side: str, tree: Path) -> Iterator[None]:
    """Say of an error whose it is, and where in the repository rather than in a worktree."""
    try:
        yield
    except PerfciError as error:
        words = str(error).replace(f"{tree}/", "")
        raise ConfigurationError(f"{side}: {words}") from None
