"""The environments of two sides: shared where both ask for the same, else made for each."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

from perfci.config import Config
from perfci.environments.installation import Installation, describe_change, packages_of
from perfci.environments.installing import installed
from perfci.environments.requirements import Requirements, files_in
from perfci.gate.sides import Sides
from perfci.history import commits
from perfci.kernel import Kernel
from perfci.progress import Observer


def are_apart(one: Requirements | None, other: Requirements | None) -> bool:
    """Whether two sides ask for different environments."""
    return (one and one.digest) != (other and other.digest)


@contextmanager
def furnished(sides: Sides, observer: Observer) -> Iterator[Sides]:
    """The sides, each in the environment that it asks for where they ask for different ones.

    A side that asks for none has the one that runs perfci. Raises BuildEnvironmentError.
    """
    if not are_apart(*sides.requirements):
        yield sides
        return
    with ExitStack() as stack:
        made = []
        observer.step("install", 0, 2, "the base")
        for done, (name, asked) in enumerate(
            zip(("base", "head"), sides.requirements, strict=True)
        ):
            whose = f"the {name}'s environment"
            is_here = name == "head" and sides.ends.head is None
            with _set_apart(asked, sides.trees[1]) if is_here else nullcontext(asked) as wanted:
                made.append(stack.enter_context(made_for(wanted, sides.config, whose)))
            observer.step("install", done + 1, 2, f"the {name}")
        before, after = made
        yield replace(
            sides,
            baseline=put_into(before, sides.baseline),
            contender=put_into(after, sides.contender),
            proposed=put_into(after, sides.proposed),
            environment_change=describe_change(packages_of(before), packages_of(after)),
            installations=(before, after),
        )


@contextmanager
def _set_apart(asked: Requirements | None, root: Path) -> Iterator[Requirements | None]:
    """What the working tree asks for, to be installed from a copy: building leaves files behind."""
    if asked is None:
        yield None
        return
    with commits.worktree(root, "HEAD") as tree:
        for each in files_in(tree):
            each.unlink()
        for each in files_in(root):
            copy = tree / each.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(each, copy, follow_symlinks=False)
        yield replace(asked, folder=tree / asked.folder.relative_to(root))


def put_into(installation: Installation | None, kernels: Sequence[Kernel]) -> tuple[Kernel, ...]:
    """The kernels, with variants that run in an environment."""
    return tuple(
        replace(
            kernel,
            variants=tuple(replace(each, installation=installation) for each in kernel.variants),
        )
        for kernel in kernels
    )


@contextmanager
def made_for(
    asked: Requirements | None, config: Config, whose: str
) -> Iterator[Installation | None]:
    """What a side asks for, made; None where it asks for none. Raises BuildEnvironmentError."""
    if asked is None:
        yield None
        return
    with installed(asked, config, whose=whose) as installation:
        yield installation
