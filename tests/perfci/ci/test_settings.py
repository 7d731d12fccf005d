"""[tool.perfci.ci]: what may stand in it."""

from pathlib import Path

import pytest

from perfci.ci.settings import CiSettings
from perfci.config import config_of_text, load_config
from perfci.errors import ConfigurationError


def test_they_are_read_with_the_others(tmp_path: Path) -> None:
    text = '[tool.perfci]\npasses = 3\n[tool.perfci.ci]\nrunners = ["h200", "a.100"]\n'
    (tmp_path / "pyproject.toml").write_text(text)
    expected = CiSettings(runners=("h200", "a.100"))
    assert load_config(tmp_path, environment={}).ci == expected
    other = config_of_text(tmp_path, text, "pyproject.toml of 0123456789", environment={})
    assert (other.ci, other.passes, other.kernels) == (expected, 3, tmp_path / "kernels")
    assert config_of_text(tmp_path, "", "there", environment={}).ci == CiSettings()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ci = 5", "ci must be a table"),
        ("ci.runner = ['a']", "unknown key 'runner' (did you mean 'runners'?)"),
        ("ci.runners = 'h200'", "must be a list such as"),
        ("ci.runners = []", "must be a list such as"),
        ("ci.runners = ['a', 'a']", "each once"),
        ("ci.runners = ['../up']", "must be a list such as"),
        ("ci.runners = ['a b']", "must be a list such as"),
        ("ci.runners = [5]", "must be a list such as"),
        ("ci.gate_label = ''", "gate_label = '' must be the name of a label"),
        ("ci.gate_label = 5", "must be the name of a label"),
        ('ci.approval_label = "a\\nb"', "must be the name of a label"),
        ("ci.approval_label = 'perf'", "must be two labels"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, line: str, words: str) -> None:
    text = f"[tool.perfci]\n{line}\n"
    with pytest.raises(ConfigurationError) as refused:
        config_of_text(tmp_path, text, "pyproject.toml of 0123456789", environment={})
    assert str(refused.value).startswith("pyproject.toml of 0123456789: [tool.perfci]: ci")
    assert words in str(refused.value)
