"""How busy others keep a CPU: read from the system, said where it is much, and no verdict."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import scratch
from records import beside_others, cell

from perfci.device import cpu
from perfci.load import (
    CoreTimes,
    busy_in,
    describe_load,
    read_core_times,
    say_load,
    used_by_others_s,
)

_STAT = """\
cpu  900 10 90 5000 300 1 2 7 100 0
cpu0 400 4 40 2500 100 1 0 3 100 0
cpu1 500 6 50 2500 200 0 2 4 0 0
cpu10 1 1 1 1 1 1 1 1 1 1
intr 1 2 3
"""


def test_only_the_cores_that_may_be_used_count_and_no_guest_twice() -> None:
    assert busy_in(_STAT, {0}) == 400 + 4 + 40 + 1 + 3
    assert busy_in(_STAT, {0, 1}) == 448 + 500 + 6 + 50 + 2 + 4


def test_what_is_not_ones_own_is_the_others() -> None:
    before = CoreTimes(busy_s=100.0, own_s=7.0)
    assert used_by_others_s(before, CoreTimes(busy_s=116.0, own_s=17.0)) == pytest.approx(6.0)
    assert used_by_others_s(None, before) is None
    assert used_by_others_s(before, None) is None


def test_this_machine_tells() -> None:
    before, after = read_core_times(), read_core_times()
    assert before is not None
    assert after is not None
    assert after.busy_s >= before.busy_s >= 0
    assert after.own_s >= before.own_s > 0


@pytest.mark.parametrize(
    ("used", "share", "is_said"),
    [
        ([(0.2, 0.5), (0.4, 0.5)], 0.3, True),
        ([(0.1, 0.5), (0.1, 0.5)], 0.1, False),
        ([(-0.01, 0.3)], 0.0, False),
        ([(9.0, 0.3)], 1.0, True),
    ],
)
def test_much_is_said_and_little_kept(
    used: list[tuple[float, float]], share: float, *, is_said: bool
) -> None:
    words, (metric,) = describe_load(used, 2)
    assert (metric.value, bool(words)) == (pytest.approx(share), is_said)


def test_of_a_moment_and_of_a_gpu_nothing_is_known() -> None:
    assert describe_load([(0.05, 0.1)], 2) == ("", ())
    assert describe_load([], None) == ("", ())


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ({"": [0.27, 0.59, 0.3]}, "27 % to 59 % of the cores while 3 latencies were measured"),
        ({"": [0.4]}, "40 % of the cores while 1 latency was measured"),
        ({"": [0.4, 0.1]}, "40 % of the cores while 1 of 2 latencies was measured"),
        (
            {"the base": [0.4, 0.5], "the head": [0.1, 0.1]},
            "40 % to 50 % of the cores while 2 latencies of the base were measured",
        ),
        (
            {"the base": [0.4, 0.5], "the head": [0.1, 0.31]},
            (
                "40 % to 50 % of the cores while 2 latencies of the base were measured, and 31 % "
                "of the cores while 1 of 2 latencies of the head was measured"
            ),
        ),
        (
            {"the base": [0.401], "the head": [0.402]},
            "40 % of the cores while 2 latencies were measured",
        ),
        (
            {"the base": [0.4], "the head": []},
            "40 % of the cores while 1 latency of the base was measured",
        ),
    ],
)
def test_a_sentence_names_the_sides_where_they_differ(
    shares: Mapping[str, Sequence[float]], said: str
) -> None:
    sides = {
        name: [beside_others(cell((1e3,)), each) for each in own] for name, own in shares.items()
    }
    assert say_load(sides) == f"A busy machine: others used {said}."


def test_of_a_quiet_machine_nothing_is_said() -> None:
    assert say_load({"": [cell((1e3,)), beside_others(cell((1e3,)), 0.24)]}) == ""
    assert say_load({"the base": [], "the head": []}) == ""


@contextmanager
def _busy(count: int) -> Iterator[None]:
    """As many processes as that which do nothing but compute."""
    with ExitStack() as stack:
        for _ in range(count):
            spinning = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(spinning.wait)
            stack.callback(spinning.kill)
        yield


def _is_rationed() -> bool:
    """Whether a control group gives us less time than the cores have."""
    limit = Path("/sys/fs/cgroup/cpu.max")
    return limit.is_file() and not limit.read_text(encoding="ascii").startswith("max")


@pytest.mark.long
@pytest.mark.skipif(_is_rationed(), reason="the cores' time is rationed here")
def test_a_busy_machine_is_said_by_run_and_show(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root", cell_budget_s=0.5, passes=8)
    scratch.write_kernel(root)
    scratch.git(root, "init", "-q")
    scratch.commit_all(root, "one")
    with _busy(2 * (cpu().core_count or 1)):
        ended = scratch.perfci(root, "run", "--case", "large")
    assert ended.returncode == 0, ended.stderr
    assert "A busy machine: others used " in ended.stdout
    shown = scratch.perfci(root, "show", "--json")
    row = scratch.rows(json.loads(shown.stdout))["plain", "large"]
    assert row["status"] == "passed"
    assert row["message"].endswith(" of the cores while it was measured")
    (share,) = (each["value"] for each in row["metrics"] if each["name"] == "others_core_share")
    assert 0.25 <= share <= 1
    assert "A busy machine: others used " in scratch.perfci(root, "show").stdout


@pytest.mark.long
@pytest.mark.skipif(_is_rationed(), reason="the cores' time is rationed here")
def test_a_busy_machine_is_said_by_noise_and_gate(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root", cell_budget_s=0.5)
    folder = scratch.write_kernel(root)
    scratch.git(root, "init", "-q")
    scratch.commit_all(root, "one")
    (folder / "plain.cpp").write_text(scratch.body("  if (count < 0) return 1;"))
    with _busy(2 * (cpu().core_count or 1)):
        study = scratch.perfci(root, "noise", "--case", "large", "--passes", "3")
        gate = scratch.perfci(root, "gate", "--base", "HEAD", "--case", "large", "--out", "files")
    assert "A busy machine: others used " in study.stdout, study.stderr
    assert "A busy machine: others used " in gate.stdout, gate.stderr
    (told,) = json.loads((root / "files" / "gate.json").read_text())["gates"]
    assert told["load"].startswith("A busy machine: others used ")
    assert gate.returncode == told["exit_code"]
