"""A variant that answers from memory when it is timed is found out, and an honest one never."""

import json
from typing import Any

import pytest
import scratch

_CASES = """\
[[bench]]
name = "timed"
tier = "smoke"
count = 4096
"""
_WORK = "torch.stack([a * x + b] * 24).sort(0).values[0]"
_BY_ADDRESS = f"""\
import torch

KNOWN = {{}}
CALLS = []


def run(x, a, b):
    CALLS.append(0)
    if len(CALLS) < 30:
        return {_WORK}
    if x.data_ptr() not in KNOWN:
        KNOWN[x.data_ptr()] = {_WORK}
    return KNOWN[x.data_ptr()]
"""
_BY_CONTENT = f"""\
import torch

KNOWN = {{}}


def run(x, a, b):
    key = x[:8].numpy().tobytes()
    if key not in KNOWN:
        KNOWN[key] = {_WORK}
    return KNOWN[key].clone()
"""
_TIRES = """\
CALLS = []


def run(x, a, b):
    CALLS.append(0)
    return a * x + b if len(CALLS) < 30 else x * 0
"""
_EASES = """\
CALLS = []


def run(x, a, b):
    CALLS.append(0)
    if len(CALLS) > 30 and (len(CALLS) < 150 or ALWAYS):
        x.zero_()
    return a * x + b
"""
_HONEST = f"import torch\n\n\ndef run(x, a, b):\n    return {_WORK}\n"


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Any]:
    """The rows of a run by variant and case."""
    root = scratch.quick(tmp_path_factory.mktemp("recheck") / "root", cell_budget_s=0.2)
    scratch.write_kernel(
        root,
        cases__toml=_CASES,
        plain__cpp=scratch.PLAIN,
        honest__py=_HONEST,
        by_address__py=_BY_ADDRESS,
        by_content__py=_BY_CONTENT,
        tires__py=_TIRES,
        eases__py=_EASES.replace("ALWAYS", "True"),
        eases_at_times__py=_EASES.replace("ALWAYS", "False"),
    )
    out = root / "run.json"
    ended = scratch.call(
        root, "run", "--device", "cpu", "--commit", "abcdef1", "--out", out, "--json"
    )
    assert ended.returncode == 1, ended.stderr
    return scratch.rows(json.loads(ended.stdout))


@pytest.mark.parametrize(
    ("variant", "status", "message"),
    [
        ("plain", "passed", ""),
        ("honest", "passed", ""),
        ("by_address", "wrong_values", "right before the timing, wrong after it"),
        ("by_content", "invalid_timing", "inputs that it has not seen: it remembers outputs"),
        ("tires", "wrong_values", "right before the timing, wrong after it"),
        ("eases", "wrong_values", "wrong after it: changes its input 'x'"),
        ("eases_at_times", "wrong_values", "wrong after it: changes its input 'x'"),
    ],
)
def test_what_was_timed_is_the_work_of_the_kernel(
    rows: dict[tuple[str, str], Any], variant: str, status: str, message: str
) -> None:
    row = rows[variant, "timed"]
    assert row["status"] == status, row["message"]
    assert message in row["message"]
