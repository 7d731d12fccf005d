"""What a check says of a variant that is wrong, refuses, or runs out of memory."""

import math
from pathlib import Path

import pytest
import scratch

from perfci.build import build
from perfci.check import Subject, WrongError, check, find_truth, judge
from perfci.config import load_config
from perfci.entry import load_entry
from perfci.history.model import Status
from perfci.inputs import draw_inputs, load_reference
from perfci.kernel import discover

_STRIDED = """\
[[check]]
name = "strided"
layout = "strided"
count = 64
"""


def _subject(root: Path, source: str, cases: str = scratch.CASES) -> Subject:
    """A ``.py`` variant of the elementwise kernel at its first case."""
    scratch.write_kernel(root, cases__toml=cases, variant__py=source)
    config = load_config(root, environment={}, cache=root / "cache")
    (kernel,) = discover(config.kernels)
    (built,) = build(kernel.variants, config)
    return Subject(
        entry=load_entry(built),
        reference=load_reference(kernel),
        kernel=kernel,
        case=kernel.cases[0],
        device="cpu",
    )


def test_an_error_that_is_no_number_is_never_recorded_as_none(tmp_path: Path) -> None:
    subject = _subject(tmp_path, "def run(x, a, b):\n    return x * float('nan')\n")
    outcome = check(subject, [1])
    assert outcome.status is Status.WRONG_VALUES
    names = {each.name for each in outcome.metrics}
    assert "yardstick_max_abs_error" in names
    assert not names & {"max_abs_error", "mean_abs_error", "rms_error", "max_rel_error"}


def test_one_output_that_is_no_number_outweighs_the_others(tmp_path: Path) -> None:
    subject = _subject(tmp_path, scratch.EAGER)
    arguments = draw_inputs(subject.reference, subject.case, device="cpu", seed=1)
    truth = find_truth(subject, arguments)
    outputs = truth.yardstick[0].clone()
    outputs[3] = math.nan
    with pytest.raises(WrongError) as caught:
        judge(subject, outputs, truth)
    assert math.isnan(caught.value.figures["max_abs_error"])
    assert math.isfinite(caught.value.figures["yardstick_max_abs_error"])


@pytest.mark.parametrize("error", ["ValueError", "NotImplementedError", "RuntimeError"])
def test_another_layout_may_be_refused(tmp_path: Path, error: str) -> None:
    source = f"def run(x, a, b):\n    raise {error}('x must be contiguous')\n"
    outcome = check(_subject(tmp_path, source, _STRIDED), [1])
    assert outcome.status is Status.SKIPPED
    assert outcome.message.startswith(f"refuses strided inputs: {error}: x must be contiguous")


@pytest.mark.parametrize(
    "statement",
    [
        "raise torch.OutOfMemoryError('CUDA out of memory. Tried to allocate 4.00 TiB.')",
        "torch.empty(1 << 42, dtype=torch.uint8)",
    ],
)
def test_running_out_of_memory_is_no_refusal(tmp_path: Path, statement: str) -> None:
    source = f"import torch\n\n\ndef run(x, a, b):\n    {statement}\n"
    outcome = check(_subject(tmp_path, source, _STRIDED), [1])
    assert outcome.status is Status.RUNTIME_ERROR
    assert outcome.message == "out of memory: tried to allocate 4.00 TiB (variant.py:5)"
