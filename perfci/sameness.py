"""Whether two builds are the same code, so that there is nothing between them to be timed.

What is asked for is more than the same machine code on the GPU: the object file of the host, which
holds the launches with their grids and blocks, and all else that a variant runs must be the same,
on the same inputs, in the same environment. Then no timer has anything to see, the host's neither.
Where any of it is not known, the code is not known to be the same. In another environment no code
is: what it is linked with and loaded beside, and for Python all that it imports, may be another.
"""

from perfci.binary.canonical import digest
from perfci.build import Build
from perfci.modules import is_self_contained


def is_same_code(before: Build, after: Build) -> bool:
    """Whether two builds run the same code, as far as all of it is known."""
    return fingerprint(before) == fingerprint(after) != ""


def fingerprint(build: Build) -> str:
    """A digest of all that a build runs; empty where that is not known.

    Of the environment it has what a side brings of its own; what both share is not in it.
    """
    if build.failed:
        return ""
    if build.variant.kind in ("python", "function"):
        known = _python(build)
    else:
        known = None if build.code.lack or not build.code.host else _compiled(build)
    own = build.variant.installation
    place = [own.digest] if own else []
    return "" if known is None else digest([build.variant.kind, *place, *known])


def _compiled(build: Build) -> list[object] | None:
    """The code and what it is linked with; None where that may be another one on each side."""
    declared, code = build.variant.declaration, build.code
    if any("-L" in flag or "/" in flag for flag in declared.flags):
        return None
    device = sorted((name, sorted(kernels.items())) for name, kernels in code.device.items())
    return [code.host, device, declared.flags, declared.libraries]


def _python(build: Build) -> list[object] | None:
    if not is_self_contained(build.variant):
        return None
    if build.variant.kind == "function":
        return [build.variant.function]
    return [build.code.source] if build.code.source else None
