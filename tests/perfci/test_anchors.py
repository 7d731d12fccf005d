"""Anchors: every run says what its machine can do, apart from the user's kernels."""

import json
from pathlib import Path

import pytest
import scratch

from perfci.anchors import anchor_cells
from perfci.device import has_gpu_driver
from perfci.kernel import Kernel

_CUDA = {
    ("perfci_copy", "memory"),
    ("perfci_copy", "cache"),
    ("perfci_empty", "launch"),
    ("perfci_product", "float32"),
    ("perfci_product", "bfloat16"),
}
_CPU = {("perfci_copy", "memory_small"), ("perfci_product", "float32_small")}


@pytest.mark.parametrize(("kind", "places"), [("cuda", _CUDA), ("cpu", _CPU)])
def test_each_kind_of_device_has_its_anchors(kind: str, places: set[tuple[str, str]]) -> None:
    cells = anchor_cells(kind)
    assert {(cell.kernel.name, cell.case.name) for cell in cells} == places
    assert len(cells) == len(places)
    assert all(cell.case.timed for cell in cells)


def test_a_product_is_named_by_its_dtype() -> None:
    kernels: dict[str, Kernel] = {cell.kernel.name: cell.kernel for cell in anchor_cells("cuda")}
    cases = kernels["perfci_product"].cases
    assert [case.name.removesuffix("_small") for case in cases] == [each.dtype for each in cases]


def test_every_run_times_the_anchors_in_each_pass(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root", anchors=True)
    scratch.write_kernel(root)
    scratch.write_kernel(root, "other")
    asked = ("--device", "cpu", "--kernel", "axpb", "--case", "large", "--passes", "2")
    ended = scratch.call(root, "run", *asked, "--commit", "abcdef1")
    assert ended.returncode == 0, ended.stderr
    assert "\nthis machine: anchors\n  anchor   case               " in ended.stdout
    assert ended.stdout.endswith("\n1 passed, 0 failed, 0 skipped\n")
    shown = json.loads(scratch.call(root, "show", "--json").stdout)
    anchors = [each for each in shown["measurements"] if each["kernel"] != "axpb"]
    assert {(each["kernel"], each["case"]) for each in anchors} == _CPU
    assert {(each["status"], len(each["passes"])) for each in anchors} == {("passed", 2)}
    assert shown["measurements"][-2:] == anchors


@pytest.mark.parametrize(
    ("source", "passes", "status"),
    [
        ("#error not today", 0, "build_failed"),
        (scratch.PLAIN.replace(" + b", " - b"), 1, "wrong_values"),
    ],
)
def test_they_are_not_timed_for_their_own_sake(
    tmp_path: Path, source: str, passes: int, status: str
) -> None:
    root = scratch.quick(tmp_path / "root", anchors=True)
    scratch.write_kernel(root, plain__cpp=source)
    asked = ("--device", "cpu", "--case", "large", "--passes", "3", "--commit", "abcdef1")
    ended = scratch.call(root, "run", *asked)
    assert ended.returncode == 1
    said = f"ended after {passes} of 3 passes: nothing is left that could be timed\n"
    assert ended.stderr.endswith(said)
    row, *anchors = json.loads(scratch.call(root, "show", "--json").stdout)["measurements"]
    assert row["status"] == status
    assert {len(each["passes"]) for each in anchors} == ({passes} if passes else set())
    assert ("this machine: anchors" in ended.stdout) == bool(passes)


def test_a_check_and_the_list_leave_them_out(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root", anchors=True)
    scratch.write_kernel(root)
    ended = scratch.call(root, "check", "--device", "cpu", "--case", "one")
    assert (ended.returncode, "anchor" in ended.stdout + ended.stderr) == (0, False)
    assert "perfci_" not in scratch.call(root, "list").stdout


def test_they_can_be_turned_off(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root", anchors=True)
    scratch.write_kernel(root)
    ended = scratch.call(
        root,
        *("run", "--device", "cpu", "--case", "large", "--commit", "abcdef1", "--json"),
        variables={"PERFCI_ANCHORS": "false"},
    )
    assert [each["kernel"] for each in json.loads(ended.stdout)["measurements"]] == ["axpb"]


_NOTHING = """\
import torch


def run(x):
    return torch.empty_like(x)
"""


def test_an_output_without_elements_is_judged_like_any_other(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root")
    (empty,) = {cell.kernel.folder for cell in anchor_cells("cuda") if "empty" in cell.kernel.name}
    scratch.write_kernel(
        root,
        "nothing",
        reference__py=(empty / "reference.py").read_text(),
        cases__toml=(empty / "cases.toml").read_text().replace('"cuda"', '"cpu"'),
        right__py=_NOTHING,
        wrong_one__py=_NOTHING.replace("empty_like(x)", "zeros(1)"),
    )
    ended = scratch.call(root, "check", "--device", "cpu")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.endswith("1 passed, 0 failed, 0 skipped; 1 of 1 control rejected\n")


@pytest.mark.gpu
@pytest.mark.long
@pytest.mark.skipif(not has_gpu_driver(), reason="needs a CUDA device")
def test_a_gpu_is_measured_by_every_timer(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root", anchors=True, cell_budget_s=0.5)
    scratch.write_kernel(root, torch_eager__py=scratch.EAGER)
    asked = ("--device", "0", "--commit", "abcdef1", "--case", "large", "--json")
    ended = scratch.perfci(root, "run", *asked, "--out", root / "run.json.gz")
    rows = {
        (each["kernel"], each["case"], each["contract"]["timer"]): each
        for each in json.loads(ended.stdout)["measurements"]
        if each["kernel"] != "axpb"
    }
    assert {(kernel, case) for kernel, case, _ in rows} == _CUDA
    assert {timer for *_, timer in rows} == {"cold", "hot", "host"}
    failed = {place: each["message"] for place, each in rows.items() if each["status"] != "passed"}
    assert failed == {}

    def median_ns(*place: str) -> float:
        samples = [each for one in rows[place]["passes"] for each in one["samples_ns"]]
        return sorted(samples)[len(samples) // 2]

    empty_ns = median_ns("perfci_empty", "launch", "hot")
    assert all(median_ns(*place) > empty_ns for place in rows if place[0] != "perfci_empty")
    cached_ns = median_ns("perfci_copy", "cache", "hot")
    assert cached_ns < median_ns("perfci_copy", "cache", "cold")
