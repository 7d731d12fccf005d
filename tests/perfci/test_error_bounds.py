"""The file of frozen bounds: what is written is read again, and what cannot be meant is named."""

import math
from pathlib import Path
from typing import Any

import pytest
import scratch
from hypothesis import given
from hypothesis import strategies as st

from perfci.declaration import Tolerance
from perfci.error_bounds import (
    Bounds,
    OutputBound,
    outputs_of,
    read_bounds,
    write_bounds,
)
from perfci.errors import ConfigurationError
from perfci.history.model import Metric
from perfci.kernel import discover

_FIGURES: dict[str, Any] = {"largest": 0.5, "rms": 0.25, "max_abs_error": 1e-7, "rms_error": 0.0}
_OUTPUT = "{ largest = 0.5, rms = 0.25, max_abs_error = 1e-7, rms_error = 0.0 }"
_LINES = {
    "workload": '"0123"',
    "seeds": "20",
    "torch": '"2.13.0"',
    "device": '"Some CPU"',
    "outputs": f"[{_OUTPUT}]",
}


def _table(heading: str = "cpu.one", **lines: str | None) -> str:
    """One table as it is written, with some lines otherwise, or left out."""
    told = {**_LINES, **lines}
    return "\n".join(
        [f"[{heading}]", *(f"{key} = {text}" for key, text in told.items() if text is not None), ""]
    )


def _bounds(**figures: float) -> Bounds:
    output = OutputBound(**{**_FIGURES, **figures})
    return Bounds(workload="0123", seeds=20, torch="2.13.0", device="Some CPU", outputs=(output,))


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "bounds.toml"
    two = Bounds(
        workload="0123",
        seeds=100,
        torch="2.13.0+cpu",
        device="Some CPU",
        outputs=(OutputBound(**_FIGURES), OutputBound(**{**_FIGURES, "rms": 1e-05})),
    )
    known = {("cuda", "one"): _bounds(), ("cpu", "one"): _bounds(rms=0.0), ("cpu", "odd"): two}
    write_bounds(path, known, ["odd", "one"])
    assert read_bounds(path, {"one": "float32", "odd": "bfloat16"}) == known
    text = path.read_text()
    assert [line for line in text.splitlines() if line.startswith("[")] == [
        "[cpu.odd]",
        "[cpu.one]",
        "[cuda.one]",
    ]
    assert max(map(len, text.splitlines())) <= 100
    assert [each.name for each in tmp_path.iterdir()] == ["bounds.toml"]


def test_no_name_of_a_device_breaks_the_file(tmp_path: Path) -> None:
    path = tmp_path / "bounds.toml"
    odd = Bounds(
        workload="0123",
        seeds=20,
        torch="2",
        device='a "b"\\u0000\n[c]' + 300 * "x",
        outputs=(OutputBound(**_FIGURES),),
    )
    write_bounds(path, {("cpu", "one"): odd}, ["one"])
    (read,) = read_bounds(path, {"one": "float32"}).values()
    assert read.device.startswith("a bu0000[c]xxx")


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none" / "bounds.toml"
    with pytest.raises(ConfigurationError, match=r"bounds\.toml: cannot be written \(no such file"):
        write_bounds(path, {}, [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[cpu", "not valid TOML"),
        ("x = '\udcff'", "not valid TOML"),
        ("x = 1\n" * 300_000, "1800000 bytes, more than bounds ever take"),
        ("[gpu.one]\n", "unknown table [gpu] (known: cpu, cuda)"),
        ("cpu = 1\n", "cpu must be a table: write [cpu.CASE]"),
        (_table("cpu.oen"), "[cpu.oen]: cases.toml has no such case (did you mean 'one'?); rename"),
        ("[cpu]\none = 1\n", "[cpu.one] must be a table"),
        (_table(seed="3"), "[cpu.one]: unknown key 'seed' (did you mean 'seeds'?)"),
        (_table(workload=None), "[cpu.one]: key 'workload' is missing"),
        (_table(workload="5"), "[cpu.one]: workload must be a string"),
        (_table(device=f'"{300 * "x"}"'), "device must be a string, 200 characters at most"),
        (_table(seeds="19"), "seeds = 19 must be a number, 20 or more"),
        (_table(seeds="true"), "seeds = True must be a number, 20 or more"),
        (_table(seeds='"many"'), "seeds = 'many' must be a number, 20 or more"),
        (_table(outputs="[]"), "outputs must be a list of tables"),
        (_table(outputs="5"), "outputs must be a list of tables"),
        (_table(outputs="[5]"), "[cpu.one]: outputs[0] must be a table"),
        (_table(outputs=f"[{_OUTPUT}, {{ rms = 1 }}]"), "outputs[1]: key 'largest' is missing"),
        (_table(outputs=f"[{_OUTPUT}]".replace("rms =", "rm =")), "unknown key 'rm'"),
        *(
            (
                _table(outputs=f"[{_OUTPUT}]".replace("0.25", value)),
                f"outputs[0]: rms = {shown} must be a number, 0 or more",
            )
            for value, shown in (
                ("nan", "nan"),
                ("inf", "inf"),
                ("-0.1", "-0.1"),
                ("true", "True"),
                ('"0"', "'0'"),
                ("1e999", "inf"),
            )
        ),
        (
            _table(outputs=f"[{_OUTPUT}]".replace("0.5", "1e8")),
            "largest = 1e+08 must be below 1.7e+07, where an error is as large as what it is of",
        ),
    ],
)
def test_a_mistake_in_the_bounds_is_named(tmp_path: Path, text: str, message: str) -> None:
    folder = scratch.write_kernel(tmp_path)
    (folder / "bounds.toml").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ConfigurationError) as raised:
        discover(tmp_path / "kernels")
    assert str(raised.value).startswith(f"{folder}/bounds.toml: ")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 600


def test_how_large_a_figure_may_be_is_the_dtypes(tmp_path: Path) -> None:
    path = tmp_path / "bounds.toml"
    path.write_text(_table(outputs=f"[{_OUTPUT}]".replace("0.5", "300")))
    assert read_bounds(path, {"one": "float16"})
    with pytest.raises(ConfigurationError, match=r"largest = 300 must be below 2\.6e\+02"):
        read_bounds(path, {"one": "bfloat16"})


def test_bounds_of_another_reference_or_case_are_stale(tmp_path: Path) -> None:
    folder = scratch.write_kernel(tmp_path)
    (kernel,) = discover(tmp_path / "kernels")
    digests = {case.name: kernel.workload_digest(case) for case in kernel.cases}
    text = "\n".join(
        _table(f"{kind}.{name}", workload=f'"{digest}"')
        for kind in ("cpu", "cuda")
        for name, digest in digests.items()
    )
    (folder / "bounds.toml").write_text(text)
    (kernel,) = discover(tmp_path / "kernels")
    assert (len(kernel.frozen), kernel.stale) == (6, frozenset())

    scratch.write_kernel(tmp_path, cases__toml=scratch.CASES.replace("1001", "1003"))
    (kernel,) = discover(tmp_path / "kernels")
    assert kernel.stale == {("cpu", "odd"), ("cuda", "odd")}
    assert len(kernel.frozen) == 4

    scratch.write_kernel(tmp_path, reference__py=scratch.REFERENCE + "\n# other\n")
    (kernel,) = discover(tmp_path / "kernels")
    assert (len(kernel.frozen), len(kernel.stale)) == (0, 6)


@given(st.floats(min_value=1e-30, max_value=1e30))
def test_a_figure_is_rounded_outward_and_only_once(value: float) -> None:
    rounded = _bounds(rms=value).outputs[0].rounded()
    assert value <= rounded.rms <= 1.1000001 * value or math.isclose(value, rounded.rms)
    assert rounded.rounded() == rounded
    assert float(f"{rounded.rms:.1e}") == rounded.rms


def test_what_crosses_a_pipe_is_all_or_an_error() -> None:
    outputs = (OutputBound(**_FIGURES), OutputBound(**{**_FIGURES, "largest": 2.0}))
    metrics = [each for index, output in enumerate(outputs) for each in output.metrics(index)]
    assert outputs_of(metrics) == outputs
    for broken in ([], metrics[1:], metrics[4:], [Metric(name="largest", value=1.0, unit="")]):
        with pytest.raises(ValueError, match=r"outputs?|invalid literal"):
            outputs_of(broken)


def test_what_is_allowed_is_told_with_what_is_declared() -> None:
    bounds = _bounds()
    assert bounds.allowed(Tolerance()) == "largest 2, rms 0.75"
    assert bounds.allowed(Tolerance(max_ratio=2.0, rms_ratio=1.0)) == "largest 1, rms 0.25"
    two = Bounds(
        workload="",
        seeds=20,
        torch="",
        device="",
        outputs=(OutputBound(**_FIGURES), OutputBound(**_FIGURES)),
    )
    assert two.allowed(Tolerance()).endswith(", output 1 largest 2, output 1 rms 0.75")
