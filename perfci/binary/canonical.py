"""Names and contents without what compilers make of paths and sources, and digests of them.

nvcc puts a hash of the source's path, its name and another hash into names without linkage outside
their file. perfci itself names a PyTorch extension by a digest of its sources, comments included.
"""

import hashlib
import re

from perfci.binary.elf import SYMBOL_OF_SECTION, Elf, Relocation

_DIGEST_LENGTH = 16
_LOCAL_NAME = re.compile(r"\d*_+(?:GLOBAL__N_|INTERNAL|nv_static_\d+)_+[0-9a-f]{8}_(\d+)_")
_LOCAL_NAME_END = re.compile(r"_[0-9a-f]{8}")
_HASHES = re.compile(rb"(?<=_)[0-9a-f]{8}(?=_\d+_\w+?_[0-9a-f]{8})|(?<=_cu_)[0-9a-f]{8}")
_MODULE_NAME = re.compile(rb"(?<=perfci_)[0-9a-f]{16}")


def canonical(symbol: str) -> str:
    """A symbol without what nvcc makes of the source's path and name.

    Names without linkage outside their file become those of the namespace without a name, as g++
    writes it: ``_ZN36_GLOBAL__N__c3ffe3a5_4_a_cu_4d11ce8d3addEv`` is ``_ZN12_GLOBAL__N_13addEv``.
    """
    kept, start = "", 0
    while found := _LOCAL_NAME.search(symbol, start):
        end = _LOCAL_NAME_END.match(symbol, found.end() + int(found[1]))
        kept += symbol[start : found.start()] + ("12_GLOBAL__N_1" if end else found[0])
        start = end.end() if end else found.end()
    return without_hashes((kept + symbol[start:]).encode()).decode(errors="replace")


def without_hashes(content: bytes) -> bytes:
    """Content with zeros for the hashes that are in names, so that it is as long as before."""
    return _MODULE_NAME.sub(b"0" * 16, _HASHES.sub(b"0" * 8, content))


def digest(*parts: object) -> str:
    """A short digest of plain values: numbers, text, bytes, lists and tuples."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:_DIGEST_LENGTH]


def relocations(elf: Elf, index: int) -> list[tuple[object, ...]]:
    """What is put into the section of that index: place, kind, and where it points to."""
    entries = elf.relocations.get(index, ())
    return sorted((each.offset, each.kind, *_target(elf, each)) for each in entries)


def _target(elf: Elf, relocation: Relocation) -> tuple[str, int]:
    """What a relocation points to: a name that others know too, else a place in a section."""
    symbol = relocation.symbol
    if symbol.section is None or symbol.is_global:
        return canonical(symbol.name), relocation.addend
    section = canonical(elf.sections[symbol.section].name)
    if symbol.kind == SYMBOL_OF_SECTION or not symbol.name:
        return section, relocation.addend
    return section, symbol.value + relocation.addend
