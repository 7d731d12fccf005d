"""How far apart fresh processes read the same kernel: perfci's timers beside the usual ways.

For each cell that is timed in the smoke tier, and in each of several fresh processes, in random
order, two readings of one variant in each way:

- ``cold`` and ``hot``: perfci's own timers, the two taking turns as two commits do in a pass;
- ``nvbench``: the mean cold GPU time of NVIDIA's nvbench, where ``cuda-bench`` is installed;
- ``blocked``: 150 times flush, keep the stream busy, record, launch, record; the median;
- ``do_bench``: the median of ``triton.testing.do_bench``;
- ``naive``: 100 times flush, record, launch, record, synchronise; the median.

The spread is the standard deviation of a reading's logarithm over the processes, in percent, and
``paired`` that of the two readings' difference: what is left where both were in one process.
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
from pathlib import Path
from typing import Any

from perfci.build import Build, build
from perfci.config import apply_environment, child_environment, load_config
from perfci.device import find_targets
from perfci.kernel import discover
from perfci.plan import Target
from perfci.prepare import architectures_for
from perfci.selection import Cell, Selection, select, variants_of
from perfci.workers.passes import PassServer

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

Readings = dict[str, dict[str, list[tuple[float, float]]]]
"""Cell → way → the two readings of each process, in nanoseconds."""


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

    random.shuffle(work)
    ways = [each for each in WAYS if each != "nvbench"]
    workloads = {
        f"{cell.kernel.name}/{cell.variant.name}/{cell.case.name}": _workload(cell, built, target)
        for cell, built in work
    }
    answers: dict[str, dict[str, tuple[float, float]]] = {}
    with torch.no_grad():
        for name, workload in workloads.items():
            answers[name] = {way: _read(way, workload) for way in random.sample(ways, len(ways))}
        if _has_nvbench():
            calls = {name: workload.calls[0] for name, workload in workloads.items()}
            for name, both_ns in _nvbench(calls).items():
                answers[name]["nvbench"] = both_ns
    send.send(answers)
    send.close()


def _workload(cell: Cell, built: Build, target: Target) -> Any:
    """What the timers are given of a cell: calls on sets of inputs and outputs of their own."""
    from perfci.checking.check import Subject, output_templates  # noqa: PLC0415
    from perfci.checking.inputs import count_bytes, draw_inputs, load_reference  # noqa: PLC0415
    from perfci.checking.outputs import GuardedOutputs  # noqa: PLC0415
    from perfci.entry import load_entry  # noqa: PLC0415
    from perfci.timers import Workload  # noqa: PLC0415

    subject = Subject(
        entry=load_entry(built),
        reference=load_reference(cell.kernel),
        kernel=cell.kernel,
        case=cell.case,
        device=target.name,
    )
    templates = output_templates(subject)
    arguments = [
        draw_inputs(subject.reference, cell.case, device=target.name, seed=seed)
        for seed in range(_SETS)
    ]
    calls = [subject.entry.bind(each, GuardedOutputs(templates).tensors) for each in arguments]
    set_bytes = count_bytes([*arguments[0].values(), *templates])
    return Workload(calls=calls, set_bytes=set_bytes, device=target.name)


def _read(way: str, workload: Any) -> tuple[float, float]:
    """Two readings of a workload in one way, in nanoseconds."""
    if way in ("cold", "hot"):
        return _in_turns(f"cuda_{way}", workload)
    read = {"blocked": _blocked, "do_bench": _do_bench, "naive": _naive}[way]
    return read(workload), read(workload)


def _in_turns(name: str, workload: Any) -> tuple[float, float]:
    from perfci.history.latency import interquartile_mean  # noqa: PLC0415
    from perfci.timers import TIMERS, timer  # noqa: PLC0415
    from perfci.timers.sampling import measure_in_turns  # noqa: PLC0415

    readers = [timer(name).open_reader(workload) for _ in range(2)]
    timings = measure_in_turns(readers, contract=TIMERS[name].contract, budget_s=BUDGET_S)
    first, second = (interquartile_mean(each.samples_ns) for each in timings)
    return first, second


def _do_bench(workload: Any) -> float:
    import triton.testing  # noqa: PLC0415

    return float(triton.testing.do_bench(workload.calls[0], return_mode="median")) * 1e6


def _naive(workload: Any) -> float:
    return _flushed(workload, samples=_NAIVE_SAMPLES, blocking_cycles=0)


def _blocked(workload: Any) -> float:
    return _flushed(workload, samples=_BLOCKED_SAMPLES, blocking_cycles=_BLOCKING_CYCLES)


def _flushed(workload: Any, *, samples: int, blocking_cycles: int) -> float:
    """The median of single launches behind a flush, with the stream kept busy or not."""
    import torch  # noqa: PLC0415

    flush = torch.empty(_FLUSH_BYTES, dtype=torch.uint8, device=workload.device)
    read_ns = []
    for _ in range(samples):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        if blocking_cycles:
            torch.cuda._sleep(blocking_cycles)  # noqa: SLF001
        flush.zero_()
        start.record()
        workload.calls[0]()
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


def _nvbench(calls: Mapping[str, Callable[[], object]]) -> dict[str, tuple[float, float]]:
    """The mean cold GPU time of each call, read twice by nvbench in this process."""
    import torch  # noqa: PLC0415
    from cuda import bench  # noqa: PLC0415

    def register(name: str, call: Callable[[], object]) -> None:
        def launch(launched: Any) -> None:
            stream = torch.cuda.ExternalStream(launched.get_stream().addressof())
            with torch.cuda.stream(stream):
                call()

        def read(state: Any) -> None:
            state.exec(launch, batched=False)

        bench.register(read).set_name(name)

    order = [(name, number) for number in range(2) for name in random.sample([*calls], len(calls))]
    for name, number in order:
        register(f"{number} {name}", calls[name])
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        limits = ["--timeout", str(_NVBENCH_TIMEOUT_S)]
        bench.run_all_benchmarks(["spread", "--quiet", "--json", report.name, *limits])
        told = json.loads(Path(report.name).read_text())
    means_ns = {each["name"]: _mean_ns(each["states"]) for each in told["benchmarks"]}
    return {name: (means_ns[f"0 {name}"], means_ns[f"1 {name}"]) for name in calls}


def _mean_ns(states: Sequence[Any]) -> float:
    """The mean cold GPU time of a benchmark's only state, as nvbench reports it."""
    (state,) = states
    (summary,) = (each for each in state["summaries"] if each["tag"] == "nv/cold/time/gpu/mean")
    (value,) = (each["value"] for each in summary["data"] if each["name"] == "value")
    return float(value) * _NS_PER_S


if __name__ == "__main__":
    main()
