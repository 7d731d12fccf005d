"""How far apart fresh processes read the same kernel: perfci's timers beside the usual ways.

For each cell that is timed in the smoke tier, and in each of several fresh processes, in random
order, one variant is loaded twice, as the two sides of a comparison are, and each is read:

- ``cold`` and ``hot``: by perfci's own timers, the two taking turns as in a pass;
- ``nvbench``: the mean cold GPU time of NVIDIA's nvbench, where ``cuda-bench`` is installed;
- ``blocked``: 150 times flush, keep the stream busy, record, launch, record; the median;
- ``do_bench``: the median of ``triton.testing.do_bench``;
- ``naive``: 100 times flush, record, launch, record, synchronise; the median.

All but the first read a side where it lies first, perfci wherever a pass would. The spread is the
standard deviation of a reading's logarithm over the processes, in percent, and ``paired`` that of
the two sides' difference: what is left where both were in one process.
Needs a CUDA device and Triton.

    python benchmarks/spread.py --processes 10 --out spread.json
"""

import argparse
import json
import math
import multiprocessing
import random
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfci.build import Build, build
from perfci.config import apply_environment, child_environment, load_config
from perfci.device import find_targets
from perfci.kernel import discover
from perfci.plan import Target
from perfci.prepare import architectures_for
from perfci.selection import Cell, Selection, select, variants_of
from perfci.workers.passes import PassServer

if TYPE_CHECKING:
    from perfci.workers.places import Places
    from perfci.workers.side import Side

WAYS = ("cold", "hot", "nvbench", "blocked", "do_bench", "naive")
BUDGET_S = 0.5
_NVBENCH_TIMEOUT_S = 2
"""By itself it goes on for 15 s where readings do not come as close as it wants them."""
_FLUSH_BYTES = 256 * 2**20
_NAIVE_SAMPLES = 100
_BLOCKED_SAMPLES = 150
_BLOCKING_CYCLES = 1_000_000
_SETS = 4
_NS_PER_S = 1e9

Call = Callable[[], object]
Readings = dict[str, dict[str, list[tuple[float, float]]]]
"""Cell → way → the readings of both sides in each process, in nanoseconds."""


def main() -> None:
    """Measure, print a table and write every reading."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=10)
    parser.add_argument("--variant", action="append", default=[])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    config = load_config()
    apply_environment(child_environment(config.cache))
    target = find_targets(None, PassServer({}).probe_gpus)[0]
    selection = Selection(variants=tuple(options.variant))
    chosen = select(discover(config.kernels), selection, target.device.kind)
    cells = [cell for cell in chosen if cell.case.timed]
    architectures = architectures_for(config, target)
    builds = build(variants_of(cells), config, architectures=architectures)
    by_key = {each.variant.key: each for each in builds}
    work = [(cell, by_key[cell.variant.key]) for cell in cells]
    readings: Readings = {}
    for number in range(options.processes):
        for name, ways in _read_in_fresh_process(work, target).items():
            for way, both_ns in ways.items():
                readings.setdefault(name, {}).setdefault(way, []).append(both_ns)
        print(f"process {number + 1} of {options.processes}", file=sys.stderr, flush=True)
        if options.out:  # each time, so that nothing is lost where it is stopped
            options.out.write_text(json.dumps({"device": target.device.model, "ns": readings}))
    print(f"{target.device.model}, {options.processes} processes")
    print("\n".join(table(readings)))


def table(readings: Readings) -> list[str]:
    """One line a cell and way: typical latency, and the spreads over the processes."""
    lines = [f"{'cell':<40} {'way':<9} {'µs':>8} {'spread':>8} {'paired':>8}"]
    for name, ways in sorted(readings.items()):
        for way in WAYS:
            both_ns = ways.get(way, [])
            if len(both_ns) < 2:
                continue
            firsts = [math.log(first) for first, _ in both_ns]
            ratios = [math.log(second / first) for first, second in both_ns]
            typical_us = statistics.median(first for first, _ in both_ns) / 1e3
            lines.append(
                f"{name:<40} {way:<9} {typical_us:8.2f} "
                f"{100 * statistics.stdev(firsts):7.2f}% {100 * statistics.stdev(ratios):7.2f}%"
            )
    return lines


def _read_in_fresh_process(
    work: list[tuple[Cell, Build]], target: Target
) -> dict[str, dict[str, tuple[float, float]]]:
    context = multiprocessing.get_context("forkserver")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_read_all, args=(send, work, target))
    process.start()
    send.close()
    try:
        answers: dict[str, dict[str, tuple[float, float]]] = receive.recv()
    finally:
        process.join()
    return answers


def _read_all(send: Any, work: list[tuple[Cell, Build]], target: Target) -> None:
    """All readings of all cells in this fresh process."""
    import torch  # noqa: PLC0415 — only the fresh processes may start CUDA

    from perfci.workers.places import Places  # noqa: PLC0415

    random.shuffle(work)
    ways = [each for each in WAYS if each != "nvbench"]
    places = Places(target.name)
    answers: dict[str, dict[str, tuple[float, float]]] = {}
    with torch.no_grad():
        sides = {
            f"{cell.kernel.name}/{cell.variant.name}/{cell.case.name}": lay_out(
                cell, built, target, places
            )
            for cell, built in work
        }
        for name, both in sides.items():
            answers[name] = {way: _read(way, both) for way in random.sample(ways, len(ways))}
        if _has_nvbench():
            for name, both_ns in _nvbench(sides).items():
                answers[name]["nvbench"] = both_ns
    send.send(answers)
    send.close()


def lay_out(cell: Cell, built: Build, target: Target, places: "Places") -> "tuple[Side, Side]":
    """Two sides of the same build as a pass lays them out, each loaded by itself."""
    from perfci.checking.check import Subject, draw  # noqa: PLC0415
    from perfci.checking.inputs import load_reference  # noqa: PLC0415
    from perfci.entry import load_again, load_entry  # noqa: PLC0415
    from perfci.workers.side import Side  # noqa: PLC0415

    reference = load_reference(cell.kernel)
    first, second = (
        Side(
            number=number,
            build=built,
            subject=Subject(
                entry=load(built),
                reference=reference,
                kernel=cell.kernel,
                case=cell.case,
                device=target.name,
            ),
        )
        for number, load in enumerate((load_entry, load_again))
    )
    arguments = [draw(first.subject, seed) for seed in range(_SETS)]
    for side in (first, second):
        side.lay_out(arguments)
    places.add((first, second), range(_SETS), nullcontext)
    return first, second


def _read(way: str, sides: "tuple[Side, Side]") -> tuple[float, float]:
    """What one way makes of both sides, in nanoseconds."""
    if way in ("cold", "hot"):
        return _in_turns(f"cuda_{way}", sides)
    read = {"blocked": _blocked, "do_bench": _do_bench, "naive": _naive}[way]
    first, second = (side.places[0].calls[0] for side in sides)
    return read(first), read(second)


def _in_turns(name: str, sides: "tuple[Side, Side]") -> tuple[float, float]:
    from perfci.history.latency import interquartile_mean  # noqa: PLC0415
    from perfci.timers import TIMERS  # noqa: PLC0415
    from perfci.timers.sampling import measure_in_turns  # noqa: PLC0415

    readers = [side.open_reader(name) for side in sides]
    timings = measure_in_turns(readers, contract=TIMERS[name].contract, budget_s=BUDGET_S)
    first, second = (interquartile_mean(each.samples_ns) for each in timings)
    return first, second


def _do_bench(call: Call) -> float:
    import triton.testing  # noqa: PLC0415

    return float(triton.testing.do_bench(call, return_mode="median")) * 1e6


def _naive(call: Call) -> float:
    return _flushed(call, samples=_NAIVE_SAMPLES, blocking_cycles=0)


def _blocked(call: Call) -> float:
    return _flushed(call, samples=_BLOCKED_SAMPLES, blocking_cycles=_BLOCKING_CYCLES)


def _flushed(call: Call, *, samples: int, blocking_cycles: int) -> float:
    """The median of single launches behind a flush, with the stream kept busy or not."""
    import torch  # noqa: PLC0415

    flush = torch.empty(_FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    read_ns = []
    for _ in range(samples):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        if blocking_cycles:
            torch.cuda._sleep(blocking_cycles)  # noqa: SLF001
        flush.zero_()
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        read_ns.append(start.elapsed_time(end) * 1e6)
    return statistics.median(read_ns)


def _has_nvbench() -> bool:
    try:
        import cuda.bench  # noqa: PLC0415, F401
    except ImportError:
        return False
    return True


def _nvbench(sides: "Mapping[str, tuple[Side, Side]]") -> dict[str, tuple[float, float]]:
    """The mean cold GPU time of each cell's sides, read by nvbench in this process."""
    import torch  # noqa: PLC0415
    from cuda import bench  # noqa: PLC0415

    def register(name: str, call: Call) -> None:
        def launch(launched: Any) -> None:
            stream = torch.cuda.ExternalStream(launched.get_stream().addressof())
            with torch.cuda.stream(stream):
                call()

        def read(state: Any) -> None:
            state.exec(launch, batched=False)

        bench.register(read).set_name(name)

    order = [(name, number) for number in range(2) for name in random.sample([*sides], len(sides))]
    for name, number in order:
        register(f"{number} {name}", sides[name][number].places[0].calls[0])
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        limits = ["--timeout", str(_NVBENCH_TIMEOUT_S)]
        bench.run_all_benchmarks(["spread", "--quiet", "--json", report.name, *limits])
        told = json.loads(Path(report.name).read_text())
    means_ns = {each["name"]: _mean_ns(each["states"]) for each in told["benchmarks"]}
    return {name: (means_ns[f"0 {name}"], means_ns[f"1 {name}"]) for name in sides}


def _mean_ns(states: Sequence[Any]) -> float:
    """The mean cold GPU time of a benchmark's only state, as nvbench reports it."""
    (state,) = states
    (summary,) = (each for each in state["summaries"] if each["tag"] == "nv/cold/time/gpu/mean")
    (value,) = (each["value"] for each in summary["data"] if each["name"] == "value")
    return float(value) * _NS_PER_S


if __name__ == "__main__":
    main()
