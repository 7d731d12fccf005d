"""The largest cases reject what counts elements in 32 bits, which no smaller one can show."""

import json
import shutil
from pathlib import Path

import pytest
import scratch

from perfci.device import has_gpu_driver

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.nvcc,
    pytest.mark.long,
    pytest.mark.skipif(not has_gpu_driver(), reason="needs a CUDA device"),
]

_ROOT = Path(__file__).parents[3]
_OUTPUT = "output_2_to_31"
_HIDDEN = "hidden_2_to_32"


@pytest.mark.parametrize(
    ("right", "wrong", "rejecting"),
    [
        pytest.param(
            "p.hidden[token * p.model + m]",
            "p.hidden[unsigned(token) * unsigned(p.model) + m]",
            _HIDDEN,
            id="begins again at the start of the input",
        ),
        pytest.param(
            "float *out = p.out + token * 2 * p.width;",
            "if (int(unsigned(token) * 2u * unsigned(p.width)) < 0) return;\n"
            "  float *out = p.out + token * 2 * p.width;",
            _OUTPUT,
            id="leaves the end of the output unwritten",
        ),
    ],
)
def test_a_kernel_that_counts_in_32_bits_is_rejected(
    right: str, wrong: str, rejecting: str, tmp_path: Path
) -> None:
    kernels = tmp_path / "root" / "kernels"
    shutil.copytree(_ROOT / "kernels", kernels, ignore=shutil.ignore_patterns("wrong"))
    source = kernels / "mla_kv_projection" / "serial.cuh"
    text = source.read_text(encoding="utf-8")
    assert text.count(right) == 1
    source.write_text(text.replace(right, wrong), encoding="utf-8")
    which = ("--kernel", "mla_kv_projection", "--variant", "serial_fp32")
    cases = ("--case", "headline", "--case", _HIDDEN, "--case", _OUTPUT)
    ended = scratch.perfci(kernels.parent, "check", *which, *cases, "--no-controls", "--json")
    rows = {each["case"]: each for each in json.loads(ended.stdout)["checks"]}
    if any(each["status"] == "skipped" for each in rows.values()):
        pytest.skip(rows[_HIDDEN]["message"])
    assert ended.returncode == 1
    assert {case: each["status"] for case, each in rows.items()} == {
        "headline": "passed",
        _HIDDEN: "passed",
        _OUTPUT: "passed",
        rejecting: "wrong_values",
    }
