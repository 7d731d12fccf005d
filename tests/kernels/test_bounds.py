"""What is shipped is judged by frozen bounds on a CPU, and none of them is stale."""

from pathlib import Path

import pytest

from perfci.kernel import read_kernels
from perfci.selftest import KERNELS

_ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("folder", [_ROOT / "kernels", KERNELS], ids=["shipped", "planted"])
def test_every_case_on_a_cpu_has_bounds_that_are_of_today(folder: Path) -> None:
    for kernel in read_kernels(folder):
        assert not kernel.stale
        cases = {case.name for case in kernel.cases if "cpu" in case.devices}
        if any("cpu" in variant.declaration.devices for variant in kernel.variants):
            assert {case for kind, case in kernel.frozen if kind == "cpu"} == cases
