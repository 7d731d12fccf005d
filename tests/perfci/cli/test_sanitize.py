"""perfci check --sanitize where there is no GPU; with one: tests/perfci/test_sanitizer_gpu.py."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import scratch


def test_a_cpu_is_refused_before_anything_is_built(
    tmp_path: Path, call: Callable[..., Any]
) -> None:
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root)
    ended = call(root, "check", "--sanitize", "--device", "cpu")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        "perfci: --sanitize is for CUDA kernels, and this is a CPU: name a GPU with --device\n"
    )
    assert not (tmp_path / "root-cache").exists()
