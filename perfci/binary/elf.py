"""ELF files of 64 bits as far as a digest of code needs them: sections, symbols, relocations.

Pure: from bytes to records. Little-endian, as is every machine that CUDA runs on, and the GPU.
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

MAGIC = b"\x7fELF\x02\x01"
"""How an ELF file of 64 bits in little-endian order begins."""

SYMBOLS, RELOCATIONS_ADDED, EMPTY, RELOCATIONS = 2, 4, 8, 9
"""Kinds of sections: symbols, relocations with an addend, memory without content, without one."""

SYMBOL_OF_SECTION, SYMBOL_OF_FILE = 3, 4
"""Kinds of symbols that stand for a section, and for the source file."""

_RESERVED_SECTION = 0xFF00
_HEADER = struct.Struct("<40xQ10xHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_ADDED = struct.Struct("<QQq")
_PLAIN = struct.Struct("<QQ")


class ElfError(ValueError):
    """What was read is no ELF file, or none that can be read; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One section. ``content`` is empty where it is memory without any; ``size_bytes`` is not."""

    name: str
    kind: int
    flags: int
    link: int
    info: int
    size_bytes: int
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    """One symbol; ``section`` is the index of where it is defined, None where it is elsewhere."""

    name: str
    kind: int
    is_global: bool
    section: int | None
    value: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Relocation:
    """A place in a section, ``offset`` bytes from its beginning, into which an address is put."""

    offset: int
    kind: int
    symbol: Symbol
    addend: int


@dataclass(frozen=True, slots=True)
class Elf:
    """A whole file. ``relocations`` are by the index of the section that they change."""

    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    relocations: Mapping[int, tuple[Relocation, ...]]


def read_elf(image: bytes) -> Elf:
    """Read an ELF file, which may be followed by other bytes. Raises ElfError."""
    sections = read_sections(image)
    try:
        symbols = next(
            (tuple(_read_symbols(each, sections)) for each in sections if each.kind == SYMBOLS), ()
        )
        relocations: dict[int, tuple[Relocation, ...]] = {}
        for each in sections:
            if each.kind in (RELOCATIONS, RELOCATIONS_ADDED):
                known = relocations.get(each.info, ())
                relocations[each.info] = (*known, *_read_relocations(each, symbols))
    except (struct.error, IndexError, ValueError) as error:
        raise ElfError(f"damaged ELF file: {error}") from None
    return Elf(sections, symbols, relocations)


def read_sections(image: bytes) -> tuple[Section, ...]:
    """Read the sections alone. Raises ElfError."""
    if not image.startswith(MAGIC):
        raise ElfError("no ELF file of 64 bits")
    try:
        return tuple(_read_sections(image))
    except (struct.error, IndexError, ValueError) as error:
        raise ElfError(f"damaged ELF file: {error}") from None


def _read_sections(image: bytes) -> Iterator[Section]:
    start, size, count, names_index = _HEADER.unpack_from(image)
    if count == 0 or names_index >= count or size != _SECTION.size:
        raise ElfError("no sections, or more than can be read")
    headers = [_SECTION.unpack_from(image, start + size * index) for index in range(count)]
    names = _content(image, headers[names_index])
    for header in headers:
        name, kind, flags, _, _, size_bytes, link, info, _, _ = header
        yield Section(
            name=_text(names, name),
            kind=kind,
            flags=flags,
            link=link,
            info=info,
            size_bytes=size_bytes,
            content=_content(image, header),
        )


def _content(image: bytes, header: tuple[int, ...]) -> bytes:
    kind, offset, size_bytes = header[1], header[4], header[5]
    if kind in (0, EMPTY):
        return b""
    content = image[offset : offset + size_bytes]
    if len(content) != size_bytes:
        raise ElfError("cut short")
    return content


def _read_symbols(table: Section, sections: tuple[Section, ...]) -> Iterator[Symbol]:
    names = sections[table.link].content
    for name, kind, _, section, value, size_bytes in _SYMBOL.iter_unpack(table.content):
        yield Symbol(
            name=_text(names, name),
            kind=kind & 0xF,
            is_global=kind >> 4 != 0,
            section=section if 0 < section < _RESERVED_SECTION else None,
            value=value,
            size_bytes=size_bytes,
        )


def _read_relocations(table: Section, symbols: tuple[Symbol, ...]) -> Iterator[Relocation]:
    if table.kind == RELOCATIONS:
        entries = [(*each, 0) for each in _PLAIN.iter_unpack(table.content)]
    else:
        entries = [*_ADDED.iter_unpack(table.content)]
    for offset, kind, addend in entries:
        yield Relocation(
            offset=offset, kind=kind & 0xFFFFFFFF, symbol=symbols[kind >> 32], addend=addend
        )


def _text(names: bytes, offset: int) -> str:
    return names[offset : names.index(b"\0", offset)].decode(errors="replace")
