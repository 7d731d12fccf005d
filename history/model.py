"""The records of perfci: frozen, keyword-only, no I/O; the unit is the end of the name.

A *run* is what one invocation measured at one commit on one device. It holds *measurements*, one
for each cell: (kernel, case, variant, contract). A measurement holds *passes*, one for each fresh
process that measured the cell, and a pass holds raw *samples* in nanoseconds, in the order in
which they were read.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from perfci.history.latency import LatencySummary, PassSpan

OWN_ENVIRONMENT = "own environment"
"""By this name an identity has a digest of the environment that a side of a comparison brought."""

ANCHOR_PREFIX = "perfci_"
"""How the names of anchors begin, the kernels by which a run measures the machine itself."""


def is_anchor(kernel: str) -> bool:
    """Whether a kernel of that name measures the machine and none of a user's code."""
    return kernel.startswith(ANCHOR_PREFIX)


NOISE_TRIGGER = "noise"
"""What starts a run that studies a testbed's own noise; it is in no history of the code."""

GATE_TRIGGER = "gate"
"""What starts the two runs of a gate, which measure a head beside its base."""

BISECT_TRIGGER = "bisect"
"""What starts the two runs of one cell that a bisection measures beside each other."""


class Status(StrEnum):
    """What became of one cell. Only ``PASSED`` carries samples."""

    PASSED = "passed"
    BUILD_FAILED = "build_failed"
    WRONG_SHAPE = "wrong_shape"
    WRONG_DTYPE = "wrong_dtype"
    WRONG_VALUES = "wrong_values"
    NONDETERMINISTIC = "nondeterministic"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    INVALID_TIMING = "invalid_timing"
    SKIPPED = "skipped"
    MISSING = "missing"

    @property
    def is_incorrect(self) -> bool:
        """Whether the kernel was run and what it returned was judged wrong."""
        return self in _INCORRECT

    @property
    def is_failure(self) -> bool:
        """Whether something that should have worked did not (skipped is no failure)."""
        return self not in (Status.PASSED, Status.SKIPPED)


_INCORRECT = frozenset(
    {Status.WRONG_SHAPE, Status.WRONG_DTYPE, Status.WRONG_VALUES, Status.NONDETERMINISTIC}
)


class Direction(StrEnum):
    """Which way a metric gets better."""

    LOWER = "lower"
    HIGHER = "higher"
    NEUTRAL = "neutral"


class Stop(StrEnum):
    """Why no more was read of a cell: of samples in a pass, or of passes in a run.

    ``STABILISED`` is where more would not bring it inside its target.
    """

    CONVERGED = "converged"
    STABILISED = "stabilised"
    OUT_OF_TIME = "out_of_time"


class Verdict(StrEnum):
    """What a comparison of one cell between two commits says.

    ``NEW`` is a cell that is right and timed, with nothing on the baseline's side to compare it
    with; ``MISSING`` is one that the baseline has and the contender does not.
    """

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    UNCHANGED = "unchanged"
    INCONCLUSIVE = "inconclusive"
    MISSING = "missing"
    NEW = "new"
    INCORRECT = "incorrect"
    KNOWN_INCORRECT = "known_incorrect"
    INCOMPARABLE = "incomparable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit as it was when measured.

    ``parents`` are in git's order, the first parent first. ``position`` counts the commits on the
    first-parent line from the root (the root is 0); None where it is unknown, as in a shallow
    clone. ``dirty`` is None for a clean tree, else the digest of its difference from ``sha``.
    """

    sha: str
    committed_at: datetime
    parents: tuple[str, ...] = ()
    position: int | None = None
    branch: str | None = None
    subject: str = ""
    dirty: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """What the kernels ran on. For a CPU, ``core_count`` counts the cores that were allowed."""

    kind: Literal["cpu", "cuda"]
    model: str
    uuid: str | None = None
    compute_capability: str | None = None
    sm_count: int | None = None
    core_count: int | None = None
    memory_bytes: int | None = None
    driver: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Where a run was measured. ``testbed`` is the name under which numbers are comparable."""

    testbed: str
    device: Device
    torch: str
    cuda: str | None = None
    nvcc: str | None = None
    compiler: str | None = None
    python: str
    os: str
    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """One reading of a device's clocks and state; what cannot be read is None."""

    sm_mhz: float | None = None
    memory_mhz: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    throttle_reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """How a latency was measured. Latencies of different contracts are never compared."""

    timer: str
    version: int
    l2: str
    warm_up: str
    inputs: str

    @property
    def label(self) -> str:
        """The contract in one word, unique by timer and version: ``cpu/1``."""
        return f"{self.timer}/{self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A named figure of a cell beside its latency, with its unit and which way is better."""

    name: str
    value: float
    unit: str
    direction: Direction = Direction.LOWER


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What one fresh process read of one cell.

    ``samples_ns`` are latencies of one call, in reading order, never rounded; each is the mean
    over ``loops`` calls back to back. ``clocks`` were read before, meanwhile and after; ``sm_mhz``
    is a GPU's while it was read, ``other_processes`` the most of others that were on it, each None
    where that is not known. With a ``quarantine``, which says why, the samples are kept and nothing
    is derived from them.
    """

    index: int
    samples_ns: tuple[float, ...]
    loops: int = 1
    stop: Stop = Stop.CONVERGED
    clocks: tuple[Clock, ...] = ()
    sm_mhz: float | None = None
    other_processes: int | None = None
    quarantine: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One kernel that a call of a variant launches on a GPU, as the driver and the compiler say.

    ``registers`` and ``local_bytes`` (stack and spills) are of a thread, ``shared_bytes`` (static
    and dynamic) of a block. ``occupancy`` is the share of a multiprocessor's warps that can be
    resident at once, between 0 and 1. ``spill_bytes`` are what a thread stores and loads because
    it ran out of registers; None where the compiler left no word of it.
    """

    function: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int
    local_bytes: int
    shared_bytes: int
    blocks_per_sm: int
    occupancy: float
    spill_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One cell of a run.

    ``contract`` is None for a case that is checked but not timed. Passes exist if and only if the
    cell passed and was timed. ``workload_digest`` (reference, case) breaks a series;
    ``source_digest`` (sources, headers, flags, compiler) is the build's key. ``identity`` holds
    what is known of the compiled code: names to text. ``launches`` are the kernels of one call in
    the order of their launch; none on a CPU, where a case is only checked, and where a call
    cannot be captured. ``stop`` says why there are no more passes where the run was to add them
    until the latency is known; None where their number was given.
    """

    kernel: str
    case: str
    variant: str
    contract: Contract | None
    status: Status
    message: str = ""
    passes: tuple[Pass, ...] = ()
    metrics: tuple[Metric, ...] = ()
    workload_digest: str = ""
    source_digest: str = ""
    identity: tuple[tuple[str, str], ...] = ()
    launches: tuple[Launch, ...] = ()
    stop: Stop | None = None

    def __post_init__(self) -> None:
        timed = self.status is Status.PASSED and self.contract is not None
        good = [each for each in self.passes if not each.quarantine]
        unclear = any(not each.samples_ns for each in self.passes)
        if timed != bool(good) or bool(good) != bool(self.passes) or unclear:
            raise ValueError(
                f"{self.kernel}/{self.variant}/{self.case}: samples exist if and only if "
                f"a timed cell passed (status {self.status}, {len(good)} of {len(self.passes)} "
                "passes not in quarantine)"
            )

    def metric(self, name: str) -> Metric | None:
        """The metric of that name, or None."""
        return next((each for each in self.metrics if each.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one invocation measured at one commit on one device.

    ``trigger`` says what started it (``local``, ``range``, ``gate``, ``bisect`` or ``noise``);
    ``attempt`` counts the runs that the store has of the same commit, or dirty tree, on the same
    testbed, this one included. Runs that were measured together, in turns, share a ``pair``: passes
    of the same index were in the same process. It is empty for a run by itself.
    """

    run_id: str
    commit: Commit
    environment: Environment
    started_at: datetime
    duration_s: float
    trigger: str = "local"
    attempt: int = 1
    perfci_version: str = ""
    pair: str = ""
    measurements: tuple[Measurement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A measurement as pages and comparisons read it: no raw samples, but their summary."""

    run_id: str
    kernel: str
    case: str
    variant: str
    contract: Contract | None
    status: Status
    message: str = ""
    latency: LatencySummary | None = None
    metrics: tuple[Metric, ...] = ()
    workload_digest: str = ""
    source_digest: str = ""
    identity: tuple[tuple[str, str], ...] = ()
    launches: tuple[Launch, ...] = ()
    stop: Stop | None = None

    @property
    def own_environment(self) -> str:
        """The digest of an environment that its side brought; empty where it was perfci's."""
        return dict(self.identity).get(OWN_ENVIRONMENT, "")

    def metric(self, name: str) -> Metric | None:
        """The metric of that name, or None."""
        return next((each for each in self.metrics if each.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """A run without its measurements; ``status_counts`` says how many cells ended how.

    Anchors are not counted: they are the machine's.
    """

    run_id: str
    commit: Commit
    environment: Environment
    started_at: datetime
    duration_s: float
    trigger: str
    attempt: int
    perfci_version: str
    status_counts: tuple[tuple[Status, int], ...]
    pair: str = ""

    @property
    def is_study(self) -> bool:
        """Whether it studies its testbed's noise, and nothing of the code."""
        return self.trigger == NOISE_TRIGGER


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class SeriesKey:
    """What makes figures of several commits one series.

    ``contract`` is the contract's label, empty for a metric of the check; ``metric`` is
    ``latency`` or a metric's name.
    """

    testbed: str
    device_model: str
    kernel: str
    case: str
    variant: str
    contract: str = ""
    metric: str = "latency"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One cell between two commits.

    ``ratio`` is contender over baseline (above 1 is slower) and ``interval`` its confidence
    interval; both None where there is nothing to compare. ``smallest_visible_change`` is the
    relative change that these passes could have shown, None where they show one that is suspected.
    ``paired_passes`` counts the passes that held both sides; without any, the sides were measured
    apart. ``is_studied`` says that the noise of this cell was measured on its testbed; it is
    assumed otherwise. ``waits`` says that more passes may decide what these left open.
    ``baseline_passes`` and ``contender_passes`` are those behind ``baseline_ns`` and
    ``contender_ns``.
    """

    key: SeriesKey
    verdict: Verdict
    reason: str = ""
    baseline_ns: float | None = None
    baseline_passes: PassSpan | None = None
    contender_ns: float | None = None
    contender_passes: PassSpan | None = None
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    smallest_visible_change: float | None = None
    paired_passes: int = 0
    is_studied: bool = False
    waits: bool = False
