"""What ptxas says of the kernels that it compiles with ``-v``: registers and spills.

Pure: from the text of a compiler's log to records, and to the log without them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_ENTRY = "ptxas info    : Compiling entry function "
_NAMES = re.compile(r"'([^']+)' for '(sm_\d+[af]?)'")
_REGISTERS = re.compile(r"Used (\d+) registers")
_REPORT = re.compile(r"ptxas info .*|\s+\d+ bytes stack frame, .*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """One kernel for one architecture. ``function`` is mangled.

    ``registers`` are of a thread; ``spill_bytes`` are what it stores and loads beside them.
    """

    function: str
    architecture: str
    registers: int
    spill_bytes: int


def read_log(log: str) -> tuple[Compiled, ...]:
    """The kernels of which a compiler's log says what they use, in its order."""
    return tuple(_read_entries(log))


def without_reports(log: str) -> str:
    """The log's other lines: what the compilers had to say to the author of the code."""
    return "\n".join(line for line in log.splitlines() if not _REPORT.fullmatch(line))


def _read_entries(log: str) -> Iterator[Compiled]:
    for entry in log.split(_ENTRY)[1:]:
        names = _NAMES.match(entry)
        if names is None:
            continue
        # Functions that are called and not inlined have properties too.
        own = f"Function properties for {re.escape(names[1])}\n"
        spilled = re.search(own + r".*?(\d+) bytes spill stores, (\d+) bytes spill loads", entry)
        used = _REGISTERS.search(entry)
        if spilled is not None and used is not None:
            yield Compiled(
                function=names[1],
                architecture=names[2],
                registers=int(used[1]),
                spill_bytes=int(spilled[1]) + int(spilled[2]),
            )
