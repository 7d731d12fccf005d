"""Records of a small CPU; every default is a plain, passing one."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from perfci.history.latency import latency_of
from perfci.history.model import (
    Cell,
    Clock,
    Commit,
    Contract,
    Device,
    Direction,
    Environment,
    Launch,
    Measurement,
    Metric,
    Pass,
    Run,
    RunSummary,
    Status,
    Stop,
)
from perfci.history.summary import run_summary
from perfci.load import OTHERS_SHARE
from perfci.timers import NOT_IN_L2, TIMERS

MOMENT = datetime(2026, 3, 1, 14, 5, tzinfo=UTC)
CPU = Contract(timer="cpu", version=1, l2="none", warm_up="none", inputs="fresh")
SHA = "0123456789abcdef0123456789abcdef01234567"


Row = TypeVar("Row", Cell, Measurement)


def beside_others(row: Row, share: float) -> Row:
    """A cell while which was measured others used so much of the cores."""
    load = Metric(name=OTHERS_SHARE, value=share, unit="", direction=Direction.NEUTRAL)
    return replace(row, metrics=(*row.metrics, load))


def environment(testbed: str = "bench") -> Environment:
    """A machine without a GPU."""
    return Environment(
        testbed=testbed,
        device=Device(kind="cpu", model="Some CPU"),
        torch="2.13.0",
        python="3.11",
        os="Linux",
        host="host",
    )


def launch(**changes: Any) -> Launch:
    """One kernel that a call launches, with whatever is to differ."""
    plain = Launch(
        function="axpb",
        grid=(256, 1, 1),
        block=(256, 1, 1),
        registers=32,
        local_bytes=0,
        shared_bytes=0,
        blocks_per_sm=8,
        occupancy=1.0,
        spill_bytes=0,
    )
    return replace(plain, **changes)


def measurement(
    means_ns: Sequence[float] = (),
    *,
    kernel: str = "rope",
    variant: str = "tiled",
    case: str = "headline",
    status: Status = Status.PASSED,
    message: str = "",
    contract: Contract | None = CPU,
    bytes_moved: float | None = None,
    flops: float | None = None,
) -> Measurement:
    """A cell with as many passes as there are means, each of one sample."""
    counted = (("bytes_moved", bytes_moved, "B"), ("flops", flops, ""))
    return Measurement(
        kernel=kernel,
        case=case,
        variant=variant,
        contract=contract,
        status=status,
        message=message,
        passes=tuple(Pass(index=i, samples_ns=(mean,)) for i, mean in enumerate(means_ns)),
        metrics=tuple(
            Metric(name=name, value=value, unit=unit, direction=Direction.NEUTRAL)
            for name, value, unit in counted
            if value is not None
        ),
        workload_digest="w",
    )


def cpu_anchors() -> tuple[Measurement, ...]:
    """What a small CPU's anchors say: 20 GB/s, 100 Gflop/s."""
    copy = {"kernel": "perfci_copy", "variant": "torch_add", "case": "memory_small"}
    product = {"kernel": "perfci_product", "variant": "torch_matmul", "case": "float32_small"}
    return (
        measurement((1e6,), **copy, bytes_moved=20e6, flops=0),
        measurement((2e6,), **product, bytes_moved=7e6, flops=200e6),
    )


def gpu_cells(
    cold_ns: float,
    hot_ns: float,
    host_ns: float,
    *,
    message: str = "",
    launches: tuple[Launch, ...] = (),
    **cell: Any,
) -> tuple[Measurement, ...]:
    """A cell as a GPU's three timers read it; ``message`` is what the hot one has to say."""
    latencies = {"cuda_cold": cold_ns, "cuda_hot": hot_ns, "host": host_ns}
    return tuple(
        replace(
            measurement(
                (latency_ns,),
                contract=TIMERS[timer].contract,
                message=message if timer == "cuda_hot" else "",
                **cell,
            ),
            launches=launches,
        )
        for timer, latency_ns in latencies.items()
    )


def gpu_anchors() -> tuple[Measurement, ...]:
    """What a GPU's anchors say: 4 TB/s, 8 in its L2, 50 Tflop/s, 800 in bfloat16."""
    copy = {"kernel": "perfci_copy", "variant": "torch_add", "flops": 0}
    product = {"kernel": "perfci_product", "variant": "torch_matmul", "bytes_moved": 1e8}
    empty = {"kernel": "perfci_empty", "variant": "torch_sleep", "bytes_moved": 0, "flops": 0}
    memory = {**copy, "case": "memory", "bytes_moved": 4e8, "message": NOT_IN_L2}
    return (
        *gpu_cells(1e5, 1e5, 1.1e5, **memory),
        *gpu_cells(5e3, 1.25e3, 12e3, **copy, case="cache", bytes_moved=1e7),
        *gpu_cells(2e6, 2e6, 2.1e6, **product, case="float32", flops=1e11, message=NOT_IN_L2),
        *gpu_cells(1e6, 1e6, 1.1e6, **product, case="bfloat16", flops=8e11, message=NOT_IN_L2),
        *gpu_cells(2e3, 500.0, 7e3, **empty, case="launch"),
    )


def gpu_run(*measurements: Measurement, **fields: Any) -> Run:
    """A run of these cells on a GPU of 100 multiprocessors."""
    recorded = run(*measurements, **fields)
    device = Device(kind="cuda", model="Some GPU", uuid="GPU-1", sm_count=100)
    return replace(recorded, environment=replace(recorded.environment, device=device))


def run(
    *measurements: Measurement,
    run_id: str = "20260301T140500-4f1c",
    sha: str = SHA,
    testbed: str = "bench",
) -> Run:
    """A run of these cells at a commit without a place on a branch."""
    return Run(
        run_id=run_id,
        commit=Commit(sha=sha, committed_at=MOMENT, subject="Unroll the inner loop"),
        environment=environment(testbed),
        started_at=MOMENT,
        duration_s=72.0,
        perfci_version="0",
        measurements=measurements,
    )


def summary(
    run_id: str = "20260301T140500-4f1c", *, sha: str = SHA, testbed: str = "bench"
) -> RunSummary:
    """A run that measured well over a thousand cells, some of which failed."""
    counts = (
        (Status.PASSED, 1200),
        (Status.WRONG_VALUES, 2),
        (Status.TIMEOUT, 1),
        (Status.SKIPPED, 4),
    )
    return replace(run_summary(run(run_id=run_id, sha=sha, testbed=testbed)), status_counts=counts)


def cell(
    means_ns: Sequence[float] = (),
    *,
    run_id: str = "20260301T140500-4f1c",
    variant: str = "tiled",
    status: Status = Status.PASSED,
    message: str = "",
    contract: Contract | None = CPU,
    workload: str = "w",
) -> Cell:
    """A cell as comparisons read it, with as many passes as there are means."""
    latency = None
    if means_ns:
        latency = latency_of(means_ns, sample_count=50 * len(means_ns))
    return Cell(
        run_id=run_id,
        kernel="rope",
        case="headline",
        variant=variant,
        contract=contract,
        status=status,
        message=message,
        latency=latency,
        workload_digest=workload,
    )


def timed_cell() -> Cell:
    """A cell as tables show it: 12.3 µs, ±2.4 %, and its errors."""
    latency = latency_of((12_225.0, 12_345.0, 12_465.0), sample_count=150)
    metrics = (
        Metric(name="max_abs_error", value=9.31e-5, unit=""),
        Metric(name="yardstick_max_abs_error", value=1.1e-4, unit=""),
    )
    return replace(cell(), latency=latency, metrics=metrics)


def rich_run(
    run_id: str = "r1",
    *,
    sha: str = "a" * 40,
    testbed: str = "bench-1",
    hours: float = 0,
    dirty: str | None = None,
    measurements: tuple[Measurement, ...] | None = None,
) -> Run:
    """A run in which every field says something, started some hours after another."""
    start = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
    device = Device(kind="cuda", model="NVIDIA H200", uuid="GPU-1", memory_bytes=2**37)
    return Run(
        run_id=run_id,
        commit=Commit(
            sha=sha,
            committed_at=start - timedelta(days=1),
            parents=("b" * 40, "c" * 40),
            position=41,
            branch="main",
            subject="Fuse <rope> & 'add'",
            dirty=dirty,
        ),
        environment=replace(environment(testbed), device=device, cuda="13.0"),
        started_at=start + timedelta(hours=hours),
        duration_s=12.5,
        trigger="push",
        attempt=2,
        perfci_version="0.1.0",
        pair="20260301T120000-ab12",
        measurements=_rich_measurements() if measurements is None else measurements,
    )


def _rich_measurements() -> tuple[Measurement, ...]:
    clocks = (Clock(sm_mhz=1980.0, throttle_reasons=("power cap", "heat")), Clock())
    passes = (
        Pass(index=1, samples_ns=(10.1, 1e-3 / 3, 12.25), loops=7, clocks=clocks),
        Pass(index=0, samples_ns=(11.0,), stop=Stop.OUT_OF_TIME),
    )
    timed: dict[str, Any] = {
        "passes": passes,
        "metrics": (
            Metric(name="rms_error", value=1 / 3, unit="", direction=Direction.LOWER),
            Metric(name="bandwidth", value=2.5e12, unit="B/s", direction=Direction.HIGHER),
        ),
        "workload_digest": "aa11",
        "source_digest": "bb22",
        "identity": (("device code", "cc33"), ("registers", "32")),
        "stop": Stop.STABILISED,
    }
    failed = measurement(
        variant="plain", status=Status.BUILD_FAILED, message="line one: 'µ'\n\tline two"
    )
    return (
        replace(measurement((1.0,), variant="fused"), **timed),
        measurement(variant="fused", case="one_token", contract=None),
        replace(failed, kernel="add"),
    )
