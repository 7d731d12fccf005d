"""What the benchmark of spreads makes of readings; reading itself needs a GPU."""

import importlib.util
import math
from pathlib import Path
from types import ModuleType

import pytest
import scratch
from subjects import build_subject

from perfci.device import cpu
from perfci.plan import Target
from perfci.selection import Cell
from perfci.workers.places import PLACES, Places


@pytest.fixture(scope="module")
def spread() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "spread.py"
    spec = importlib.util.spec_from_file_location("spread", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_spread_is_between_processes_and_the_paired_one_within(spread: ModuleType) -> None:
    both_ns = [(10_000.0 * math.exp(each), 10_000.0 * math.exp(each)) for each in (-0.1, 0.0, 0.1)]
    _, line = spread.table({"kernel/variant/case": {"cold": both_ns}})
    assert line.split() == ["kernel/variant/case", "cold", "10.00", "10.00%", "0.00%"]


def test_one_process_has_no_spread(spread: ModuleType) -> None:
    assert len(spread.table({"kernel/variant/case": {"cold": [(1.0, 1.0)]}})) == 1


def test_a_way_that_was_not_there_has_no_line(spread: ModuleType) -> None:
    lines = spread.table({"a/b/c": {"hot": [(1.0, 1.0)] * 2, "naive": [(2.0, 2.0)] * 2}})
    assert [line.split()[1] for line in lines[1:]] == ["hot", "naive"]


def test_the_mean_is_read_from_the_report_of_nvbench(spread: ModuleType) -> None:
    def summary(tag: str, value: str) -> dict[str, object]:
        return {"tag": tag, "data": [{"name": "value", "type": "float64", "value": value}]}

    states = [
        {
            "summaries": [
                summary("nv/cold/time/cpu/mean", "0.5"),
                summary("nv/cold/time/gpu/mean", "1.25e-05"),
            ]
        }
    ]
    assert spread._mean_ns(states) == pytest.approx(12_500.0)


def test_one_variant_is_laid_out_as_two_sides_in_all_places(
    spread: ModuleType, tmp_path: Path
) -> None:
    scratch.write_kernel(tmp_path)
    built, subject = build_subject(tmp_path)
    cell = Cell(kernel=subject.kernel, variant=built.variant, case=subject.case)
    sides = spread.lay_out(cell, built, Target(name="cpu", device=cpu()), Places("cpu"))
    assert [len(side.places) for side in sides] == [PLACES] * 2
    assert sides[0].subject.entry is not sides[1].subject.entry
    for first, second in zip(*(side.places for side in sides), strict=True):
        assert first.arguments is second.arguments
