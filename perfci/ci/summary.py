"""The page of a job on GitHub, where a verdict stands whatever else GitHub takes."""

from pathlib import Path

LONGEST_BYTES = 1_000_000
"""GitHub takes 1 MiB a step, and nothing at all of what is longer."""


def write_summary(path: Path, text: str) -> str:
    """Add a text to the summary of a job; return why it could not be, empty where it could."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{text.rstrip()}\n")
    except OSError as error:
        return f"{path}: cannot be written: {error.strerror}"
    return ""
