"""What one job of GitHub's says to the next: lines in the file that GITHUB_OUTPUT names."""

import secrets
from collections.abc import Mapping
from pathlib import Path

from perfci.errors import ConfigurationError


def write_outputs(path: Path, values: Mapping[str, str]) -> None:
    """Add outputs to the file, none of which can be taken for another, whatever it holds.

    Raises ConfigurationError where the file cannot be written.
    """
    mark = f"perfci-{secrets.token_hex(16)}"
    text = "".join(f"{name}<<{mark}\n{value}\n{mark}\n" for name, value in values.items())
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be written: {error.strerror}") from None
