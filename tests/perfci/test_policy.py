"""What matters where, and what was accepted, as a project says it."""

from pathlib import Path

import pytest

from perfci.config import Config, load_config
from perfci.errors import ConfigurationError
from perfci.gate.contest import thresholds_of
from perfci.history.model import SeriesKey
from perfci.policy import Accepted

_ACCEPTED = """
[[tool.perfci.accepted]]
kernel = "rope"
case = "long"
slower_by = 0.1
reason = "Right for odd lengths now"
"""


def _load(folder: Path, text: str) -> Config:
    (folder / "pyproject.toml").write_text(text)
    return load_config(folder, environment={"PERFCI_CACHE": str(folder)})


def test_thresholds_are_by_case_else_by_kernel_else_the_general_one(tmp_path: Path) -> None:
    config = _load(
        tmp_path,
        '[tool.perfci]\nthreshold = 0.04\n[tool.perfci.thresholds]\nrope = 0.03\n"rope/long" = 0.1',
    )
    thresholds = thresholds_of(config)
    found = [
        thresholds.of(SeriesKey(testbed="t", device_model="m", kernel=k, case=c, variant="v"))
        for k, c in (("rope", "long"), ("rope", "short"), ("norm", "long"))
    ]
    assert found == [0.1, 0.03, 0.04]


def test_what_was_accepted_has_its_reason(tmp_path: Path) -> None:
    (accepted,) = _load(tmp_path, _ACCEPTED).accepted
    assert accepted == Accepted(
        kernel="rope", case="long", slower_by=0.1, reason="Right for odd lengths now"
    )
    assert str(accepted) == "rope/*/long slower by 0.1: Right for odd lengths now"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[tool.perfci]\nthresholds = 0.1", "thresholds must be a table"),
        ("[tool.perfci.thresholds]\nrope = 0", "thresholds: rope = 0 must be a number above 0"),
        ('[tool.perfci.thresholds]\n"a/b/c" = 1', "'a/b/c' is neither a kernel nor kernel/case"),
        ("[tool.perfci.accepted]\nkernel = 1", "write [[tool.perfci.accepted]]"),
        (_ACCEPTED.replace("reason", "raeson"), "accepted 1: unknown key 'raeson' (did you mean"),
        (_ACCEPTED.replace('"Right for odd lengths now"', '" "'), "reason must be a text"),
        (_ACCEPTED.replace("slower_by = 0.1\n", ""), "key 'slower_by' is missing"),
        (_ACCEPTED.replace("0.1", "true"), "slower_by = True must be a number above 0"),
    ],
)
def test_what_is_no_policy_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        _load(tmp_path, text)
    assert words in str(caught.value)
    assert "pyproject.toml: [tool.perfci]: " in str(caught.value)
