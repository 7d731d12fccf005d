"""Whether two builds are the same code, so that there is nothing between them to be timed.

What is asked for is more than the same machine code on the GPU: the object file of the host, which
holds the launches with their grids and blocks, and all else that a variant runs must be the same,
on the same inputs, in the same environment. Then no timer has anything to see, the host's neither.
Where any of it is not known, the code is not known to be the same.
"""

from perfci.build import Build
from perfci.modules import is_self_contained


def is_same_code(before: Build, after: Build) -> bool:
    """Whether two builds of one environment run the same code, as far as all of it is known."""
    if before.failed or after.failed or before.variant.kind != after.variant.kind:
        return False
    if before.variant.kind in ("python", "function"):
        return _is_same_python(before, after)
    one, other = before.code, after.code
    if one.lack or other.lack or not one.host:
        return False
    return one == other and _links(before) == _links(after) is not None


def _links(build: Build) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """What a library is linked with; None where that may be another one on each side."""
    declared = build.variant.declaration
    if any("-L" in flag or "/" in flag for flag in declared.flags):
        return None
    return declared.flags, declared.libraries


def _is_same_python(before: Build, after: Build) -> bool:
    if not (is_self_contained(before.variant) and is_self_contained(after.variant)):
        return False
    if before.variant.kind == "function":
        return before.variant.function == after.variant.function
    return bool(before.code.source) and before.code == after.code
