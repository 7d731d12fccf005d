"""Whether a variant computes the same each time is found out, and varying has to be declared."""

import json

import pytest
import scratch

_VARYING = """\
{declared}import torch


def run(x, a, b):
    y = a * x + b
    y[0] *= 1 + 1e-7 * torch.randint(0, 2, ()).item()
    return y
"""
_SIGNED = """\
CALLS = []


def run(x, a, b):
    CALLS.append(x)
    y = a * x + b
    return y if len(CALLS) % 2 else y * -1.0 * -1.0
"""


def _identity(row: dict[str, object]) -> list[list[str]]:
    identity = row["identity"]
    assert isinstance(identity, list)
    return identity


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, object]]:
    """The rows of a run by variant and case."""
    root = scratch.quick(tmp_path_factory.mktemp("repeats") / "root")
    scratch.write_kernel(
        root,
        plain__cpp=scratch.PLAIN,
        signed__py=_SIGNED,
        varying__py=_VARYING.format(declared=""),
        declared__py=_VARYING.format(declared="# perfci: nondeterministic = true\n"),
        peer__py=_VARYING.format(declared="# perfci: peer = true\n"),
    )
    out = root / "run.json"
    ended = scratch.call(
        root, "run", "--device", "cpu", "--commit", "abcdef1", "--out", out, "--json"
    )
    assert ended.returncode == 1, ended.stderr
    return scratch.rows(json.loads(ended.stdout))


def test_varying_undeclared_is_a_failure_that_says_what_to_do(
    rows: dict[tuple[str, str], dict[str, object]],
) -> None:
    row = rows["varying", "large"]
    assert row["status"] == "nondeterministic"
    message = str(row["message"])
    assert "of 20 with the same inputs differs from the first at 1 of 65,536 elements" in message
    assert message.endswith("declare nondeterministic = true if that is meant")


@pytest.mark.parametrize(
    ("variant", "deterministic"),
    [("plain", "yes"), ("signed", "yes"), ("declared", "no"), ("peer", "no")],
)
def test_it_is_recorded_at_the_first_case(
    rows: dict[tuple[str, str], dict[str, object]], variant: str, deterministic: str
) -> None:
    row = rows[variant, "large"]
    assert row["status"] == "passed"
    assert ["deterministic", deterministic] in _identity(row)
    others = [
        row for (name, case), row in rows.items() if (name, case != "large") == (variant, True)
    ]
    assert not [each for row in others for each in _identity(row) if each[0] == "deterministic"]
