"""What nvcc embeds into a library: a container of machine code and PTX for several GPUs.

Pure. NVIDIA publishes no description; the fields are those that nvcc 13.0 was seen to write: a
container is a magic number and its size, then entries, each a header and its content.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from perfci.binary.elf import ElfError

SECTION = ".nv_fatbin"
"""The section of a library that holds the containers, one behind the other."""

_CONTAINER = struct.Struct("<IxxHQ")
_ENTRY = struct.Struct("<HxxIQ12xI")
_MAGIC = 0xBA55ED50
_MACHINE_CODE = 2
_ALIGNMENT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Cubin:
    """Machine code for one architecture: 90 for sm_90 and sm_90a.

    ``content`` is an ELF file, or none that can be read where nvcc has compressed it.
    """

    architecture: int
    content: bytes


def read_cubins(section: bytes) -> tuple[Cubin, ...]:
    """All machine code in a section of containers. Raises ElfError where they are damaged."""
    try:
        return tuple(_read_containers(section))
    except struct.error as error:
        raise ElfError(f"damaged container of device code: {error}") from None


def _read_containers(section: bytes) -> Iterator[Cubin]:
    start = 0
    while start < len(section):
        # Linkers align containers, with zeros between them.
        if not any(section[start : start + _ALIGNMENT]):
            start += _ALIGNMENT
            continue
        magic, header_bytes, size_bytes = _CONTAINER.unpack_from(section, start)
        content = start + header_bytes
        start = content + size_bytes
        if magic != _MAGIC or header_bytes < _CONTAINER.size or start > len(section):
            raise ElfError("damaged container of device code")
        yield from _read_entries(section[content:start])


def _read_entries(entries: bytes) -> Iterator[Cubin]:
    start = 0
    while start < len(entries):
        kind, header_bytes, size_bytes, architecture = _ENTRY.unpack_from(entries, start)
        content = start + header_bytes
        start = content + size_bytes
        if header_bytes < _ENTRY.size or start > len(entries):
            raise ElfError("damaged container of device code")
        if kind == _MACHINE_CODE:
            yield Cubin(architecture=architecture, content=entries[content:start])
