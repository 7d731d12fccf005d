"""What became of a cell in its passes, and the rows of a run that this makes. Torch-free."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from perfci.build import Build
from perfci.decision.precision import stop_of
from perfci.history.latency import interquartile_mean
from perfci.history.model import (
    OWN_ENVIRONMENT,
    Contract,
    Measurement,
    Metric,
    Pass,
    Status,
    is_anchor,
)
from perfci.history.plain import PlainError, plain, record
from perfci.history.summary import summarise
from perfci.history.text import one_line, printable
from perfci.load import describe_load
from perfci.outcome import Outcome
from perfci.plan import Target
from perfci.quarantine import describe_passes, describe_state, set_apart, set_apart_with
from perfci.sameness import fingerprint
from perfci.selection import Cell
from perfci.timers import TIMERS
from perfci.units import count_things


@dataclass(slots=True, kw_only=True)
class State:
    """What is known so far of one cell: its outcomes by pass, and what ended it if it failed.

    ``beside`` is the same cell of the side that is measured with it, where there is one.
    """

    cell: Cell
    build: Build
    failure: Outcome | None = None
    outcomes: list[tuple[int, Outcome]] = field(default_factory=list)
    beside: "State | None" = field(default=None, repr=False, compare=False)

    @property
    def name(self) -> tuple[str, str, str]:
        """Kernel, variant and case."""
        return self.cell.kernel.name, self.cell.variant.name, self.cell.case.name

    def add(self, index: int, outcome: Outcome) -> None:
        """Add what became of the cell in a pass."""
        self.outcomes.append((index, outcome))
        if outcome.status is not Status.PASSED:
            self.failure = outcome

    def passes(self, contract: Contract) -> list[Pass]:
        """What was read under a contract, those in quarantine that the GPU's state has spoilt.

        What spoilt the side that is measured with it has spoilt both.
        """
        own = _read(self, contract)
        return own if self.beside is None else set_apart_with(own, _read(self.beside, contract))

    def pass_means_ns(self, contract: Contract) -> list[float]:
        """The interquartile mean of each pass under a contract that is not in quarantine."""
        return [
            interquartile_mean(each.samples_ns)
            for each in self.passes(contract)
            if not each.quarantine
        ]


def can_be_timed(sides: Sequence[State], timers: Sequence[str]) -> bool:
    """Whether passes tell of a latency of the code's: no side failed, and a timer reads them all.

    Of an anchor they tell of the machine alone.
    """
    cell = sides[0].cell
    if is_anchor(cell.kernel.name) or not cell.case.timed or any(each.failure for each in sides):
        return False
    outcomes = [outcome for each in sides for _, outcome in each.outcomes]
    invalid = {label for outcome in outcomes for label, _ in outcome.invalid}
    return any(TIMERS[name].contract.label not in invalid for name in timers)


def _read(state: State, contract: Contract) -> list[Pass]:
    """What was read of one side."""
    return set_apart(
        [
            Pass(
                index=index,
                samples_ns=timing.samples_ns,
                loops=timing.loops,
                stop=timing.stop,
                clocks=timing.clocks,
                sm_mhz=timing.sm_mhz,
                other_processes=timing.other_processes,
            )
            for index, outcome in state.outcomes
            for timing in outcome.timings
            if timing.contract == contract
        ]
    )


def rows_of(
    state: State, timers: Sequence[str], *, target: Target, precision: float | None = None
) -> Iterator[Measurement]:
    """The measurements of one cell: one a contract, or one without where it is only checked.

    ``precision`` is what half an interval was to be in units of the latency, where passes were
    added for it: the rows say how that ended.
    """
    contracts: Sequence[Contract | None] = [None]
    if state.cell.case.timed and timers:
        contracts = [TIMERS[name].contract for name in timers]
    for contract in contracts:
        row = _row(state, contract, target)
        if precision is not None and row.passes:
            row = replace(row, stop=stop_of(summarise(row.passes).pass_means_ns, target=precision))
        yield _recordable(row)


def _recordable(row: Measurement) -> Measurement:
    """The row, or one that says why it cannot be kept: code under test must not cost the others.

    What a worker said is well formed, and yet a kernel that speaks in its worker's place could
    say what no store takes.
    """
    try:
        record(Measurement, plain(row))
    except PlainError as error:
        message = one_line(f"cannot be recorded: {error}")
        return replace(row, status=Status.RUNTIME_ERROR, message=message, passes=(), metrics=())
    return row


def _row(state: State, contract: Contract | None, target: Target) -> Measurement:
    cell, variant = state.cell, state.cell.variant
    outcomes = [outcome for _, outcome in state.outcomes]
    final = state.failure or outcomes[-1]
    passes: list[Pass] = []
    if final.status is Status.PASSED and contract is not None:
        final = _of_timer(final, outcomes, contract)
    if final.status is Status.PASSED and contract is not None:
        passes = state.passes(contract)
    crowded, load = describe_load(
        _used_by_others(outcomes, contract) if passes else (), target.device.core_count
    )
    told = (final.message, describe_passes(passes), crowded)
    message = "; ".join(each for each in told if each)
    if state.failure is not None and len(outcomes) > 1:
        passed = count_things(len(outcomes) - 1, "pass", "passes")
        message = f"passed {passed}, then: {message}"
    return Measurement(
        kernel=variant.kernel,
        case=cell.case.name,
        variant=variant.name,
        contract=contract,
        status=final.status,
        message=printable(message),
        passes=tuple(passes),
        metrics=(*_metrics(state, outcomes), *describe_state(passes), *load),
        workload_digest=cell.kernel.workload_digest(cell.case),
        source_digest=state.build.digest,
        identity=_identity(state, outcomes, target),
        launches=outcomes[0].launches if outcomes and target.device.kind == "cuda" else (),
    )


def _identity(
    state: State, outcomes: Sequence[Outcome], target: Target
) -> tuple[tuple[str, str], ...]:
    """What is known of the code, and by what bounds it was judged.

    What a worker says of what is known here is not believed.
    """
    built = dict(state.build.code.texts(target.device.compute_capability))
    own = state.cell.variant.installation
    place = {OWN_ENVIRONMENT: own.digest} if own else {}
    known = {**built, **_unread(state), **place, **_bounds(state.cell, target.device.kind)}
    told = outcomes[0].identity if outcomes else ()
    return tuple({**built, **dict(told), **known}.items())


def _unread(state: State) -> dict[str, str]:
    """That a variant may run more than is known of it, where it may."""
    if state.build.failed or state.build.code.lack or fingerprint(state.build):
        return {}
    return {"further code not read": "what it imports, or is linked with"}


def _bounds(cell: Cell, device_kind: str) -> dict[str, str]:
    """By what bounds a cell's results are judged, where it is not by the library's own TF32."""
    kernel, declared = cell.kernel, cell.variant.declaration
    if is_anchor(kernel.name) or declared.tf32:
        return {}
    tolerance = kernel.tolerance(cell.case.dtype).tightened(declared.tolerance)
    return {"bounds": kernel.judged_by((device_kind, cell.case.name), tolerance)}


def _of_timer(final: Outcome, outcomes: Sequence[Outcome], contract: Contract) -> Outcome:
    """The outcome as one timer sees it: invalid where it could not time the cell in some pass."""
    for outcome in outcomes:
        reason = dict(outcome.invalid).get(contract.label)
        if reason is not None:
            return replace(final, status=Status.INVALID_TIMING, message=reason)
    notes = [
        timing.note
        for outcome in outcomes
        for timing in outcome.timings
        if timing.contract == contract and timing.note
    ]
    return replace(final, message=notes[0]) if notes else final


def _used_by_others(
    outcomes: Sequence[Outcome], contract: Contract | None
) -> list[tuple[float, float]]:
    """For each pass: for how long others used the cores, and how long it took, in seconds."""
    return [
        (timing.others_s, timing.span_s[1] - timing.span_s[0])
        for outcome in outcomes
        for timing in outcome.timings
        if timing.contract == contract and timing.others_s is not None
    ]


def _metrics(state: State, outcomes: Sequence[Outcome]) -> tuple[Metric, ...]:
    """The worst figure of every metric over all passes, and the time it took to compile."""
    worst: dict[str, Metric] = {}
    for outcome in outcomes:
        for metric in outcome.metrics:
            known = worst.get(metric.name)
            if known is None or metric.value > known.value:
                worst[metric.name] = metric
    if state.build.library is not None:
        worst["compile_s"] = Metric(name="compile_s", value=state.build.compile_s, unit="s")
    return tuple(worst.values())
