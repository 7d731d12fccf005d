"""What a variant's code is: digests that say of two builds whether their code is the same.

They do not see folders, comments, times and line information. Device code is digested kernel by
kernel (perfci.binary.cubin), host code is the object file less the device code in it, and the code
of a ``.py`` variant is its syntax tree. Where the files are compiled in is no matter, since symbols
are known by name and the hashes of paths in them are left out.
"""

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perfci.binary import fatbin
from perfci.binary.canonical import canonical, digest, relocations, without_hashes
from perfci.binary.cubin import digest_kernels
from perfci.binary.elf import MAGIC, ElfError, read_elf, read_sections

FORM = 1
"""Counts what digests are made of: those of another form cannot be compared."""

_IS_LOADED = 0x2
_NOT_HOST_CODE = re.compile(r"\.nv_fatbin|__nv_relfatbin|\.nvFatBinSegment|\.eh_frame|\.note\..*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """The code of one build, by digests.

    ``device`` is by architecture (``sm_90``) and the kernel's symbol, ``source`` a Python file's;
    what a variant does not have is empty. ``lack`` says what of it there is and cannot be told.
    """

    source: str = ""
    host: str = ""
    device: Mapping[str, Mapping[str, str]] = field(default_factory=dict, hash=False)
    lack: str = ""

    def loaded_by(self, compute_capability: str | None) -> str:
        """The device code that a GPU of a compute capability loads, as one digest.

        ``sm_90 0123456789abcdef``; empty where there is none.
        """
        if compute_capability is None:
            return ""
        major, minor = (int(part) for part in compute_capability.split("."))
        numbers = [int(each.removeprefix("sm_")) for each in self.device]
        fitting = [each for each in numbers if each // 10 == major and each % 10 <= minor]
        if not fitting:
            return ""
        architecture = f"sm_{max(fitting)}"
        return f"{architecture} {digest(sorted(self.device[architecture].items()))}"

    def texts(self, compute_capability: str | None) -> tuple[tuple[str, str], ...]:
        """Names and texts as a measurement on that device records them."""
        known = {
            "source": self.source,
            "device code": self.loaded_by(compute_capability),
            "host code": self.host,
            "code not read": self.lack,
        }
        return tuple((name, text) for name, text in known.items() if text)


def read_code(library: Path, object_file: Path) -> Code:
    """The code of a variant from what its build has left. Never raises for what is in the files."""
    lacks: list[str] = []
    device: Mapping[str, Mapping[str, str]] = {}
    host = ""
    try:
        device = device_code(library.read_bytes())
    except ElfError as error:
        lacks.append(f"device code: {error}")
    try:
        host = host_code(object_file.read_bytes())
    except ElfError as error:
        lacks.append(f"host code: {error}")
    return Code(host=host, device=device, lack="; ".join(lacks))


def read_source(content: bytes) -> Code:
    """The code of a Python file, by what it says without its comments."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return Code(lack="source: does not parse")
    return Code(source=digest(ast.dump(tree)))


def device_code(library: bytes) -> dict[str, dict[str, str]]:
    """The digest of each kernel in a shared library, by architecture and symbol.

    Empty for a library without device code. Raises ElfError where its machine code cannot be read.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for section in read_sections(library):
        if section.name != fatbin.SECTION:
            continue
        for cubin in fatbin.read_cubins(section.content):
            if not cubin.content.startswith(MAGIC):
                raise ElfError(
                    f"what is for sm_{cubin.architecture} is compressed; compile with -no-compress"
                )
            known = found.setdefault(f"sm_{cubin.architecture}", [])
            known += digest_kernels(cubin.content)
    return {architecture: _by_name(kernels) for architecture, kernels in found.items() if kernels}


def cubin_code(cubin: bytes) -> str:
    """One digest of all kernels of a cubin. Raises ElfError."""
    return digest(digest_kernels(cubin))


def host_code(object_file: bytes) -> str:
    """The digest of an object file's host code. Raises ElfError where it cannot be read."""
    elf = read_elf(object_file)
    if any(section.name.startswith(".gnu.lto_") for section in elf.sections):
        raise ElfError("its code is made when it is linked (-flto)")
    loaded = {
        index: section
        for index, section in enumerate(elf.sections)
        if section.flags & _IS_LOADED and not _NOT_HOST_CODE.fullmatch(section.name)
    }
    return digest(
        [
            [
                without_hashes(section.name.encode()),
                section.flags,
                section.size_bytes,
                without_hashes(section.content),
                relocations(elf, index),
            ]
            for index, section in loaded.items()
        ],
        sorted(
            (canonical(each.name), loaded[each.section].name, each.value)
            for each in elf.symbols
            if each.is_global and each.section in loaded
        ),
    )


def _by_name(kernels: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Digests by symbol; one digest for several kernels that are known by the same."""
    names: dict[str, list[str]] = {}
    for name, each in sorted(kernels):
        names.setdefault(name, []).append(each)
    return {name: each[0] if len(each) == 1 else digest(each) for name, each in names.items()}
