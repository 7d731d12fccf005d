"""What can be said of the CUDA sources without a GPU: they compile, and say what is missing."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import trial
from trial import Trial

from perfci.entry import Entry, KernelError
from perfci.kernel import Kernel, Variant
from perfci.toolchain import DEFAULT_ARCHITECTURES, compile_command, find_compiler

COMPILER = find_compiler("nvcc")
SOURCES = [
    pytest.param(each, id=f"{kernel.name}-{each.name}")
    for kernel in trial.KERNELS.values()
    for each in (*kernel.variants, *kernel.controls)
    if trial.is_cuda(each)
]
pytestmark = [
    pytest.mark.nvcc,
    pytest.mark.skipif(COMPILER is None, reason="nvcc is not installed"),
]


@pytest.mark.long
@pytest.mark.parametrize("variant", SOURCES)
def test_compiles_without_warnings_and_spills(variant: Variant, tmp_path: Path) -> None:
    assert COMPILER is not None
    command = compile_command(variant, compiler=COMPILER, architectures=(), module_name="")
    extra = ["-Xcompiler", "-Wall", "-Xptxas", "-v", "-o", str(tmp_path / "library.so")]
    answer = subprocess.run([*command, *extra], capture_output=True, text=True, check=False)
    printed = answer.stdout + answer.stderr
    assert answer.returncode == 0, printed
    assert "warning" not in printed.lower()
    for architecture in DEFAULT_ARCHITECTURES:
        assert f"for '{architecture}'" in printed
    spilled = re.findall(r"(\d+) bytes spill (?:stores|loads)", printed)
    assert spilled
    assert set(spilled) == {"0"}


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize(("kernel", "name"), trial.named(trial.is_cuda))
def test_says_what_the_runtime_refuses(
    kernel: str,
    name: str,
    load_on_host: Callable[[str, str], Entry],
    shipped: dict[str, Kernel],
) -> None:
    tried = Trial(kernel=shipped[kernel], entry=load_on_host(kernel, name))
    with pytest.raises(KernelError, match=r"^(launching|setting shared memory): cuda\w+: \w+"):
        tried.run(tried.draw(), tried.output())
