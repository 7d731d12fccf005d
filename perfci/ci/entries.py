"""What lies at a path that somebody else has filled: asked of the path itself, never of a link.

A folder that may not be read, or a name that is too long, has nothing in it, and is no error.
"""

import stat
from pathlib import Path


def is_there(path: Path) -> bool:
    """Whether anything lies at a path, a link that leads nowhere included."""
    return _mode(path) is not None


def is_plain_file(path: Path) -> bool:
    """Whether a regular file does; a link may lead anywhere, and a pipe may never end."""
    mode = _mode(path)
    return mode is not None and stat.S_ISREG(mode)


def folders_in(folder: Path) -> list[Path]:
    """The folders in a folder, by name."""
    try:
        inside = sorted(folder.iterdir())
    except OSError:
        return []
    modes = [(each, _mode(each)) for each in inside]
    return [each for each, mode in modes if mode is not None and stat.S_ISDIR(mode)]


def _mode(path: Path) -> int | None:
    try:
        return path.lstat().st_mode
    except OSError:
        return None
