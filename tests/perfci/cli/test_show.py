"""perfci show: what it says of a latency is what every other command says of it."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import scratch
from records import cpu_anchors, measurement, run

from perfci.history.model import Measurement, Pass
from perfci.history.stores import open_store

_A, _B = "a" * 40, "b" * 40


def _torn() -> Measurement:
    """Two of eight passes were a hundred times slower, and so had time for few samples."""
    passes = [Pass(index=index, samples_ns=(12_300.0,) * 200) for index in range(6)]
    passes += [Pass(index=index, samples_ns=(1_230_000.0,) * 5) for index in (6, 7)]
    return replace(measurement((1.0,)), passes=tuple(passes))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project in whose store such a cell lies at two commits, beside a calm one."""
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root)
    with open_store(f"sqlite:///{root}/.perfci/history.db") as store:
        for sha in (_A, _B):
            calm = measurement((5000.0, 5010.0, 4990.0), variant="calm")
            cells = [replace(each, kernel="axpb") for each in (_torn(), calm)]
            store.add(run(*cells, *cpu_anchors(), run_id=sha[0], sha=sha))
    return root


def test_passes_that_were_slower_are_seen_and_every_command_shows_the_same_latency(
    root: Path, call: Callable[..., Any]
) -> None:
    shown = call(root, "show", _A).out
    explained = call(root, "explain", "axpb", _A).out
    compared = call(root, "compare", _A, _B).out
    for text in (shown, explained, compared):
        assert " 26.5 µs  " in text  # 12.3 µs × 100 to the power of one sixth
    assert "  tiled    ! 26.5 µs  > ±900 %  " in shown
    assert "  tiled    ! 26.5 µs  " in explained
    assert "\n  axpb/tiled/headline  cpu/1  8 of 8  12.3 µs  1.23 ms\n" in shown
    assert "\n  tiled  cpu    8 of 8  12.3 µs  1.23 ms\n" in explained
    (case,) = json.loads(call(root, "explain", "axpb", _A, "--json").out)["cases"]
    calm, torn = (variant["readings"][0] for variant in case["variants"])
    assert torn["latency_ns"] == torn["latency"]["typical_ns"] == pytest.approx(26_500, rel=1e-3)
    assert len(torn["latency"]["pass_means_ns"]) == 8
    assert calm["latency"]["interval_ns"] == pytest.approx([4975.0, 5025.0], rel=1e-3)
    assert "calm" not in shown.partition("! passes far")[2]


def test_its_help_says_that_the_latency_is_trimmed(root: Path, call: Callable[..., Any]) -> None:
    said = " ".join(call(root, "show", "--help").out.split())
    assert "A latency is a trimmed mean over passes: each weighs the same, and from five on" in said
    assert "the highest and the lowest fifth are cut" in said


def test_nothing_is_said_of_passes_that_agree(root: Path, call: Callable[..., Any]) -> None:
    text = call(root, "explain", "axpb", _A, "--variant", "calm").out
    assert "5.00 µs" in text
    assert "!" not in text
