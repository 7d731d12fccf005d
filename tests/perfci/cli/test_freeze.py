"""perfci check --freeze: bounds written beside the cases, and what is judged by them since."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import scratch

from perfci.device import has_gpu_driver

_PAIR = """\
import torch


def make_inputs(*, count, dtype, device, generator):
    return {"x": torch.randn(count, dtype=dtype, device=device, generator=generator)}


def reference(x):
    return x / 3, torch.where(x < 2.7, x, SPECIAL).exp()


def bytes_moved(*, count, dtype):
    return 3 * count * dtype.itemsize


def flops(*, count):
    return 2 * count
"""
_TWO = "def run(x):\n    return x / 3, x.exp()\n"
_OFF = "def run(x, a, b):\n    return (a * x + b) * (1 + 3e-6)\n"
_HUGE = '[[check]]\nname = "huge"\nmemory_gib = 1e6\ncount = 9\n'
_FULL = '[[check]]\nname = "full"\ncount = 33\n'
_CUDA = """
[cuda.one]
workload = "0123456789abcdef"
seeds = 20
torch = "2.11.0"
device = "Some GPU"
outputs = [
  { largest = 0.5, rms = 0.2, max_abs_error = 1.2e-07, rms_error = 1.1e-07 },
]
"""


def _freeze(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return scratch.call(root, "check", "--freeze", "--device", "cpu", *arguments)


def _tables(path: Path) -> list[str]:
    return re.findall(r"^\[(\w+\.\w+)\]$", path.read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two kernels, one with cases of all kinds and bounds of another device, one of two outputs."""
    root = scratch.quick(tmp_path_factory.mktemp("freeze") / "root")
    folder = scratch.write_kernel(
        root, cases__toml=scratch.CASES + _FULL + _HUGE, eager__py=scratch.EAGER, off__py=_OFF
    )
    (folder / "bounds.toml").write_text(_CUDA)
    scratch.write_kernel(
        root,
        "pair",
        reference__py=_PAIR.replace("SPECIAL", "x"),
        cases__toml='[[check]]\nname = "one"\ncount = 100\n',
        two__py=_TWO,
    )
    scratch.write_kernel(root, "cuda_only", plain__cu="")
    return root


@pytest.fixture(scope="module")
def frozen(root: Path) -> subprocess.CompletedProcess[str]:
    return _freeze(root)


def test_what_changed_is_a_table(frozen: subprocess.CompletedProcess[str], root: Path) -> None:
    assert frozen.returncode == 0, frozen.stderr
    lines = frozen.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert re.match(r"axpb · cpu · .+", lines[0])
    assert lines[1].split() == ["case", "largest", "before", "rms", "before", "change"]
    large = next(line for line in lines if line.strip().startswith("large "))
    assert re.fullmatch(r"  large +0?\.?\d+ +– +0?\.?\d+ +– +\+ new", large)
    assert [line.split()[0] for line in lines if "[" in line] == ["one", "one"]  # two outputs
    assert "· left as it was · axpb/huge" in lines
    assert "    the case needs 1e+06 GiB of memory, this device has" in frozen.stdout
    assert lines[-2:] == [
        "5 new, 1 left as it was",
        "written to bounds.toml beside the cases: review and commit it",
    ]
    assert "freeze: 50 of 50 (pair/one)" in frozen.stderr
    assert not (root / "kernels" / "cuda_only" / "bounds.toml").exists()
    assert not (root / ".perfci").exists()


@pytest.mark.usefixtures("frozen")
def test_all_tiers_are_frozen_and_other_devices_are_left_alone(root: Path) -> None:
    path = root / "kernels" / "axpb" / "bounds.toml"
    assert _tables(path) == ["cpu.large", "cpu.one", "cpu.odd", "cpu.full", "cuda.one"]
    assert path.read_text().endswith(_CUDA)


@pytest.mark.usefixtures("frozen")
def test_freezing_again_changes_nothing(root: Path) -> None:
    paths = [root / "kernels" / name / "bounds.toml" for name in ("axpb", "pair")]
    before = [path.read_text() for path in paths]
    again = _freeze(root)
    assert again.returncode == 0
    assert again.stdout.splitlines()[-1] == "5 same, 1 left as it was"
    assert "written to" not in again.stdout
    assert [path.read_text() for path in paths] == before


@pytest.mark.usefixtures("frozen")
def test_only_what_is_chosen_is_frozen_anew(root: Path) -> None:
    path = root / "kernels" / "axpb" / "bounds.toml"
    before = path.read_text()
    path.write_text(re.sub(r"largest = [\d.]+", "largest = 0.0", before))
    ended = _freeze(root, "--kernel", "axpb", "--case", "odd", "--json")
    (told,) = json.loads(ended.stdout)
    assert (told["case"], told["before"]["outputs"][0]["largest"]) == ("odd", 0.0)
    assert told["after"]["outputs"][0]["largest"] > 0
    assert path.read_text().count("largest = 0.0") == 4
    smoke = _freeze(root, "--kernel", "axpb", "--tier", "smoke")
    assert smoke.stdout.splitlines()[-2] == "2 looser, 1 same"
    assert path.read_text().count("largest = 0.0") == 2
    path.write_text(before)


@pytest.mark.usefixtures("frozen")
def test_results_are_judged_by_the_file(root: Path) -> None:
    path = root / "kernels" / "axpb" / "bounds.toml"
    before = path.read_text()
    checks = ("check", "--device", "cpu", "--kernel", "axpb", "--case", "large", "--json")

    def statuses() -> dict[str, Any]:
        told = json.loads(scratch.call(root, *checks).stdout)["checks"]
        return {each["variant"]: each for each in told}

    honest = statuses()
    assert {name: each["status"] for name, each in honest.items()} == {
        "eager": "passed",
        "off": "wrong_values",
    }
    assert re.fullmatch(r"largest \S+, rms \S+", dict(honest["eager"]["identity"])["bounds"])
    assert {"rms_error", "yardstick_max_abs_error"} <= {
        each["name"] for each in honest["off"]["metrics"]
    }
    try:
        path.write_text(re.sub(r"(largest|rms) = [\d.]+", r"\1 = 99", before))
        loose = statuses()
        assert {each["status"] for each in loose.values()} == {"passed"}
        assert dict(loose["off"]["identity"])["bounds"] == "largest 396, rms 297"
    finally:
        path.write_text(before)


@pytest.mark.usefixtures("frozen")
def test_what_is_not_frozen_or_stale_is_said_in_a_line(root: Path) -> None:
    path = root / "kernels" / "axpb" / "bounds.toml"
    before = path.read_text()
    checks = ("check", "--device", "cpu", "--kernel", "axpb", "--variant", "eager")
    assert "perfci check --freeze" not in scratch.call(root, *checks).stdout
    without_one = re.sub(r"\[cpu\.one\][^\[]*\[[^\]]*\]\n\n", "", before)
    table = re.search(r'\[cpu\.odd\]\nworkload = "(\w+)"', before)
    assert table is not None
    try:
        path.write_text(without_one.replace(table[1], "0" * 16))
        ended = scratch.call(root, *checks)
        assert ended.returncode == 0
        assert " ".join(ended.stdout.split()).endswith(
            "bounds of cases: 1 is stale (the reference or the case changed since), 1 is not "
            "frozen for this kind of device: judged by the library's errors at the same inputs; "
            "perfci check --freeze freezes them 3 passed, 0 failed, 0 skipped"
        )
        told = json.loads(scratch.call(root, *checks, "--json").stdout)["checks"]
        bounds = {each["case"]: dict(each["identity"])["bounds"] for each in told}
        assert (bounds["odd"], bounds["one"]) == ("stale", "not frozen")
        assert bounds["large"].startswith("largest ")
    finally:
        path.write_text(before)


def test_a_reference_that_is_none_to_judge_by_leaves_the_file_alone(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root")
    folder = scratch.write_kernel(
        root,
        reference__py=_PAIR.replace("SPECIAL", "x * 40"),  # in some seeds beyond float32
        cases__toml='[[check]]\nname = "one"\ncount = 100\n',
        two__py=_TWO,
    )
    ended = _freeze(root)
    assert ended.returncode == 1
    assert "✗ failed · axpb/one" in ended.stdout
    assert "finite in float64 and not in the case's dtype" in ended.stdout
    assert ended.stdout.splitlines()[-1] == "1 failed"
    assert not (folder / "bounds.toml").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--variant", "eager"), 2, "calls no variant: leave out --variant"),
        (("--sanitize",), 2, "calls no variant: leave out --sanitize"),
        (("--no-controls",), 2, "calls no variant: leave out --no-controls"),
        (("--case", "odf"), 2, "no case 'odf' (did you mean 'odd'?)"),
        (("--kernel", "cuda"), 2, "no kernel 'cuda'"),
        (("--kernel", "cuda_only"), 3, "nothing to freeze on cpu with this selection"),
    ],
)
def test_what_cannot_be_frozen_is_refused(
    call: Callable[..., Any], root: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    ended = call(root, "check", "--freeze", "--device", "cpu", *arguments)
    assert ended.code == code
    assert message in ended.err


@pytest.mark.gpu
@pytest.mark.long
@pytest.mark.skipif(not has_gpu_driver(), reason="needs a CUDA device")
def test_on_a_gpu_its_own_bounds_stand_beside_the_others(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root")
    folder = scratch.write_kernel(root, eager__py=scratch.EAGER)
    on_cpu = scratch.perfci(root, "check", "--freeze", "--device", "cpu")
    assert on_cpu.returncode == 0, on_cpu.stderr
    cpu_text = (folder / "bounds.toml").read_text()
    ended = scratch.perfci(root, "check", "--freeze", "--device", "0")
    assert ended.returncode == 0, ended.stderr
    assert (folder / "bounds.toml").read_text().startswith(cpu_text)
    assert _tables(folder / "bounds.toml")[3:] == ["cuda.large", "cuda.one", "cuda.odd"]
    again = scratch.perfci(root, "check", "--freeze", "--device", "0")
    assert again.stdout.splitlines()[-1] == "3 same"
    checked = scratch.perfci(root, "check", "--device", "0", "--json")
    assert checked.returncode == 0, checked.stdout
    told = json.loads(checked.stdout)["checks"]
    assert all(dict(each["identity"])["bounds"].startswith("largest") for each in told)
