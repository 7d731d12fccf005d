"""Outputs of a step: no value is taken for another output."""

from pathlib import Path

import pytest

from perfci.ci.outputs import write_outputs
from perfci.errors import ConfigurationError


def read_outputs(text: str) -> dict[str, str]:
    """What GitHub reads in such a file: ``name<<mark``, lines, ``mark``."""
    found = {}
    lines = iter(text.split("\n"))
    for line in lines:
        if not line:
            continue
        name, sign, mark = line.partition("<<")
        assert sign, f"{line} is no output"
        body = []
        while (each := next(lines)) != mark:
            body.append(each)
        found[name] = "\n".join(body)
    return found


def test_a_value_stays_one_whatever_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "output"
    path.write_text("")
    values = {"reason": "a\nact=run\nEOF\nact<<EOF\nrun\nEOF", "act": "nothing", "base": ""}
    write_outputs(path, values)
    write_outputs(path, {"more": "$(touch x)"})
    assert read_outputs(path.read_text()) == {**values, "more": "$(touch x)"}


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be written"):
        write_outputs(tmp_path, {"act": "run"})
