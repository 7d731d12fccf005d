"""How far apart fresh processes read the same kernel: perfci's timers beside two usual ways.

For each cell that is timed in the smoke tier, and in each of several fresh processes, four readings
of one variant, in random order:

- ``cold`` and ``hot``: perfci's own timers;
- ``do_bench``: the median of ``triton.testing.do_bench``;
- ``naive``: flush, record, launch, record, synchronise; the median.

The spread of a reading is the standard deviation of its logarithm over the processes, in percent;
the range is largest over smallest less one. Needs a CUDA device and Triton.

    python benchmarks/spread.py --processes 10 --out spread.json
"""

import argparse
import json
import math
import multiprocessing
import random
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perfci.build import Build, build
from perfci.config import apply_environment, child_environment, load_config
from perfci.device import find_targets
from perfci.kernel import discover
from perfci.passes import PassServer
from perfci.plan import Target
from perfci.run import architectures_for
from perfci.selection import Cell, Selection, select, variants_of

READINGS = ("cold", "hot", "do_bench", "naive")
BUDGET_S = 0.5
_FLUSH_BYTES = 256 * 2**20
_NAIVE_SAMPLES = 100
_SETS = 4


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
    context = multiprocessing.get_context("forkserver")
    readings: dict[str, dict[str, list[float]]] = {}
    for number in range(options.processes):
        receive, send = context.Pipe(duplex=False)
        process = context.Process(target=_read_all, args=(send, work, target))
        process.start()
        send.close()
        for name, values in receive.recv().items():
            for reading, value_ns in values.items():
                readings.setdefault(name, {}).setdefault(reading, []).append(value_ns)
        process.join()
        print(f"process {number + 1} of {options.processes}", file=sys.stderr, flush=True)
    print(f"{target.device.model}, {options.processes} processes")
    print("\n".join(table(readings)))
    if options.out:
        options.out.write_text(json.dumps({"device": target.device.model, "ns": readings}))


def table(readings: dict[str, dict[str, list[float]]]) -> list[str]:
    """One line a cell and reading: typical latency, spread and range over the processes."""
    lines = [f"{'cell':<44} {'reading':<9} {'µs':>8} {'spread':>8} {'range':>8}"]
    for name, values in sorted(readings.items()):
        for reading in READINGS:
            ns = values.get(reading, [])
            if len(ns) < 2:
                continue
            logs = [math.log(each) for each in ns]
            spread = statistics.stdev(logs)
            lines.append(
                f"{name:<44} {reading:<9} {statistics.median(ns) / 1e3:8.2f} "
                f"{100 * spread:7.2f}% {100 * (max(ns) / min(ns) - 1):7.2f}%"
            )
    return lines


def _read_all(send: Any, work: list[tuple[Cell, Build]], target: Target) -> None:
    """All readings of all cells in this fresh process."""
    import torch  # noqa: PLC0415 — only the fresh processes may start CUDA

    from perfci.check import Subject, output_templates  # noqa: PLC0415
    from perfci.entry import load_entry  # noqa: PLC0415
    from perfci.inputs import count_bytes, draw_inputs, load_reference  # noqa: PLC0415
    from perfci.outputs import GuardedOutputs  # noqa: PLC0415
    from perfci.timers import Workload  # noqa: PLC0415

    answers: dict[str, dict[str, float]] = {}
    random.shuffle(work)
    for cell, built in work:
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
        workload = Workload(calls=calls, set_bytes=set_bytes, device=target.name)
        with torch.no_grad():
            answers[f"{cell.kernel.name}/{cell.variant.name}/{cell.case.name}"] = {
                reading: _read(reading, workload)
                for reading in random.sample(READINGS, len(READINGS))
            }
    send.send(answers)
    send.close()


def _read(reading: str, workload: Any) -> float:
    import triton.testing  # noqa: PLC0415

    from perfci.history.summary import interquartile_mean  # noqa: PLC0415
    from perfci.timers import TIMERS, timer  # noqa: PLC0415
    from perfci.timers.sampling import measure  # noqa: PLC0415

    call: Callable[[], object] = workload.calls[0]
    if reading == "do_bench":
        return float(triton.testing.do_bench(call, return_mode="median")) * 1e6
    if reading == "naive":
        return _naive(call, workload.device)
    name = f"cuda_{reading}"
    reader = timer(name).open_reader(workload)
    timing = measure(reader, contract=TIMERS[name].contract, budget_s=BUDGET_S)
    return interquartile_mean(timing.samples_ns)


def _naive(call: Callable[[], object], device: str) -> float:
    import torch  # noqa: PLC0415

    flush = torch.empty(_FLUSH_BYTES, dtype=torch.uint8, device=device)
    samples = []
    for _ in range(_NAIVE_SAMPLES):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        flush.zero_()
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        samples.append(start.elapsed_time(end) * 1e6)
    return statistics.median(samples)


if __name__ == "__main__":
    main()
