"""The kernels of a cubin, each by a digest of what a launch of it would execute.

That is its instructions and those of the functions that it calls, its constants, its shared memory,
and what a launch has to know: registers, stack, parameters, bounds. Line information, symbols that
nothing refers to and the order of sections are not in it.
"""

import re
import struct
from collections.abc import Iterator

from perfci.binary.canonical import canonical, digest, relocations
from perfci.binary.elf import Elf, ElfError, Section, Symbol, read_elf

_SHARED_BY_KERNELS = re.compile(r"\.nv\.(constant\d+|global\.init)")
_OF_A_KERNEL = r"\.nv\.(constant\d+|shared|local)\."
_CODE = ".text."
_ATTRIBUTES = ".nv.info"

_SIZED = 4
_TOOLKIT_VERSION = 0x37
_FIRST_IS_SYMBOL = {0x0A, 0x11, 0x12, 0x23, 0x2F}  # bank of parameters, stack sizes, registers
_ALL_ARE_SYMBOLS = {0x0F}  # functions of the driver that are called


def digest_kernels(cubin: bytes) -> list[tuple[str, str]]:
    """Symbol and digest of each kernel, and of each function that has a section of its own.

    Constants and variables that all kernels of a cubin share belong to each. Raises ElfError.
    """
    elf = read_elf(cubin)
    try:
        return sorted(_digests(elf))
    except (struct.error, IndexError) as error:
        raise ElfError(f"damaged device code: {error}") from None


def _digests(elf: Elf) -> Iterator[tuple[str, str]]:
    shared = [
        [section.name, section.content, relocations(elf, index)]
        for index, section in enumerate(elf.sections)
        if _SHARED_BY_KERNELS.fullmatch(section.name)
    ]
    for index, section in enumerate(elf.sections):
        if section.name.startswith(_CODE):
            reached = [_function(elf, each) for each in _reached(elf, index)]
            yield canonical(section.name.removeprefix(_CODE)), digest(reached, shared)


def _reached(elf: Elf, index: int) -> list[int]:
    """The sections of a function and of those that it calls, its own first."""
    reached = [index]
    for each in reached:
        for relocation in elf.relocations.get(each, ()):
            target = relocation.symbol.section
            if target is None or target in reached:
                continue
            if elf.sections[target].name.startswith(_CODE):
                reached.append(target)
    return reached


def _function(elf: Elf, index: int) -> list[object]:
    """What one function consists of and what a launch of it has to know."""
    code = elf.sections[index]
    of_it = re.compile(_OF_A_KERNEL + re.escape(code.name.removeprefix(_CODE)))
    memory = [
        (found[1], section.size_bytes, section.content, relocations(elf, number))
        for number, section in enumerate(elf.sections)
        if (found := of_it.fullmatch(section.name))
    ]
    told = [
        (attribute, [canonical(each.name) for each in symbols], words)
        for section in elf.sections
        if section.name.startswith(_ATTRIBUTES)
        for attribute, symbols, words in _attributes(elf, section)
        if (symbols[0].section if section.name == _ATTRIBUTES else section.info) == index
    ]
    return [
        code.flags,
        code.info >> 24,
        code.content,
        relocations(elf, index),
        sorted(memory),
        sorted(told),
    ]


def _attributes(
    elf: Elf, section: Section
) -> Iterator[tuple[int, tuple[Symbol, ...], tuple[int, ...]]]:
    """Each attribute's number, the symbols that it names and its other words of 32 bits."""
    content, start = section.content, 0
    while start < len(content):
        form, attribute, value = struct.unpack_from("<BBH", content, start)
        start += 4
        words: tuple[int, ...] = (value,)
        if form == _SIZED:
            padded = content[start : start + value] + bytes(-value % 4)
            words = struct.unpack(f"<{len(padded) // 4}I", padded)
            start += value
        count = len(words) if attribute in _ALL_ARE_SYMBOLS else int(attribute in _FIRST_IS_SYMBOL)
        if attribute != _TOOLKIT_VERSION:
            yield attribute, tuple(elf.symbols[each] for each in words[:count]), words[count:]
