"""What a variant's compiled code depends on: its source and the headers it includes."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE)


def source_files(source: Path, search: Sequence[Path]) -> list[Path]:
    """The source and every header that it includes, directly or not, and that is found.

    A quoted name is looked for beside the including file first, then in ``search``; a name in
    angle brackets in ``search`` only, so that the system's headers, which belong to the
    compiler's version, are left out. Conditional includes count whether taken or not.
    """
    found: dict[Path, None] = {}
    pending = [source.resolve()]
    while pending:
        path = pending.pop()
        if path in found:
            continue
        found[path] = None
        for match in _INCLUDE.finditer(path.read_bytes()):
            name = (match[1] or match[2]).decode(errors="replace")
            folders = (path.parent, *search) if match[1] else search
            header = next((each / name for each in folders if (each / name).is_file()), None)
            if header is not None:
                pending.append(header.resolve())
    return list(found)


def digest_files(files: Iterable[Path]) -> str:
    """A digest of the files' names and contents, the same wherever their folder lies."""
    entries = sorted((path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in files)
    return hashlib.sha256(repr(entries).encode()).hexdigest()
