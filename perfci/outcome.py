"""What a worker says of one task, as a record and as the JSON that crosses the pipe.

Code under test runs in the worker and could write to its pipe, so that what arrives is parsed,
not trusted.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from perfci.history.model import Clock, Contract, Direction, Launch, Metric, Status, Stop
from perfci.history.plain import plain, record
from perfci.history.text import one_line, printable

_MESSAGE_LIMIT = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What one timer read of one cell in one pass; ``note`` is what a reader should know of it.

    ``span_s`` is when it began and ended, by ``time.monotonic``, which is the same for all
    processes of a machine. ``clocks``, ``sm_mhz`` and ``other_processes`` are added by the process
    that watches the passes. ``others_s`` is for how long others used a CPU's cores.
    """

    contract: Contract
    samples_ns: tuple[float, ...]
    loops: int
    stop: Stop
    note: str = ""
    span_s: tuple[float, float] = (0.0, 0.0)
    others_s: float | None = None
    clocks: tuple[Clock, ...] = ()
    sm_mhz: float | None = None
    other_processes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one task: its status, its figures, and its timings where it passed.

    ``invalid`` holds (contract's label, reason) for each timer that could not time it,
    ``launches`` the kernels of one call where they were asked for, ``identity`` what the worker
    found out about the code: names to text.
    """

    status: Status
    message: str = ""
    metrics: tuple[Metric, ...] = ()
    timings: tuple[Timing, ...] = ()
    invalid: tuple[tuple[str, str], ...] = ()
    launches: tuple[Launch, ...] = ()
    identity: tuple[tuple[str, str], ...] = ()


def require_pair(outcomes: Sequence[Outcome]) -> tuple[Outcome, ...]:
    """The outcomes of a cell's sides; what passed beside one that did not has no figures.

    What is timed in turns has no meaning by itself.
    """
    failed = next((each for each in outcomes if each.status is not Status.PASSED), None)
    if failed is None:
        return tuple(outcomes)
    words = failed.status.value.replace("_", " ")
    message = f"not timed: the other side has nothing to pair with ({words})"
    missing = Outcome(status=Status.MISSING, message=message)
    return tuple(
        replace(missing, metrics=each.metrics) if each.status is Status.PASSED else each
        for each in outcomes
    )


class MalformedOutcomeError(Exception):
    """What came through the pipe is no outcome."""


def encode_outcome(outcome: Outcome) -> dict[str, Any]:
    """An outcome as plain JSON values."""
    return {
        "status": outcome.status.value,
        "message": outcome.message,
        "metrics": [[m.name, m.value, m.unit, m.direction.value] for m in outcome.metrics],
        "timings": [_encode_timing(timing) for timing in outcome.timings],
        "invalid": outcome.invalid,
        "launches": plain(outcome.launches),
        "identity": outcome.identity,
    }


def decode_outcome(value: Any) -> Outcome:
    """An outcome from plain JSON values; MalformedOutcomeError where they are none."""
    try:
        outcome = Outcome(
            status=Status(value["status"]),
            message=printable(str(value["message"]))[:_MESSAGE_LIMIT],
            metrics=tuple(
                Metric(name=one_line(n), value=float(v), unit=one_line(u), direction=Direction(d))
                for n, v, u, d in value["metrics"]
            ),
            timings=tuple(_decode_timing(timing) for timing in value["timings"]),
            invalid=tuple(
                (one_line(label), one_line(reason)) for label, reason in value["invalid"]
            ),
            launches=tuple(record(Launch, each) for each in value["launches"]),
            identity=tuple((one_line(name), one_line(text)) for name, text in value["identity"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise MalformedOutcomeError(f"malformed outcome: {error}") from None
    if not all(math.isfinite(metric.value) for metric in outcome.metrics):
        raise MalformedOutcomeError("malformed outcome: a metric that is no finite number")
    if outcome.status is not Status.PASSED and outcome.timings:
        raise MalformedOutcomeError("malformed outcome: timings of a task that did not pass")
    return outcome


def encode_message(event: str, task: int, outcome: Outcome | None = None) -> bytes:
    """One message of a worker, a line: ``ready``, ``start`` or ``done`` with that task's index."""
    body = None if outcome is None else encode_outcome(outcome)
    return json.dumps([event, task, body]).encode() + b"\n"


def decode_message(blob: bytes) -> tuple[str, int, Outcome | None]:
    """The event, the task's index and, for ``done``, the outcome."""
    try:
        event, task, body = json.loads(blob)
    except (TypeError, ValueError, RecursionError) as error:
        raise MalformedOutcomeError(f"malformed message: {error}") from None
    if event not in ("ready", "start", "done") or not isinstance(task, int):
        raise MalformedOutcomeError(f"malformed message: {str(event)[:40]!r}")
    return event, task, decode_outcome(body) if event == "done" else None


def _encode_timing(timing: Timing) -> dict[str, Any]:
    contract = timing.contract
    return {
        "contract": [
            contract.timer,
            contract.version,
            contract.l2,
            contract.warm_up,
            contract.inputs,
        ],
        "samples_ns": timing.samples_ns,
        "loops": timing.loops,
        "stop": timing.stop.value,
        "note": timing.note,
        "span_s": timing.span_s,
        "others_s": timing.others_s,
    }


def _decode_timing(value: Any) -> Timing:
    timer, version, l2, warm_up, inputs = value["contract"]
    began_s, ended_s = value["span_s"]
    others_s = value["others_s"]
    samples_ns = tuple(float(sample) for sample in value["samples_ns"])
    if not samples_ns or not all(math.isfinite(each) and each > 0 for each in samples_ns):
        raise ValueError("a sample that is no positive number")
    if int(value["loops"]) < 1:
        raise ValueError("a sample of no call")
    return Timing(
        contract=Contract(
            timer=str(timer),
            version=int(version),
            l2=str(l2),
            warm_up=str(warm_up),
            inputs=str(inputs),
        ),
        samples_ns=samples_ns,
        loops=int(value["loops"]),
        stop=Stop(value["stop"]),
        note=one_line(value["note"]),
        span_s=(_finite(began_s), _finite(ended_s)),
        others_s=None if others_s is None else _finite(others_s),
    )


def _finite(value: Any) -> float:
    if not math.isfinite(value):
        raise ValueError("a time that is no finite number")
    return float(value)
