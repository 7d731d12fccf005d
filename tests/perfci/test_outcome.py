"""What a worker says, and that nothing else passes for it."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfci.history.model import Direction, Launch, Metric, Status, Stop
from perfci.outcome import (
    MalformedOutcomeError,
    Outcome,
    Timing,
    decode_message,
    decode_outcome,
    encode_message,
    encode_outcome,
)
from perfci.timers import TIMERS

_OUTCOME = Outcome(
    status=Status.PASSED,
    message="two\nlines",
    metrics=(Metric(name="flops", value=1e300, unit="B", direction=Direction.NEUTRAL),),
    timings=(
        Timing(
            contract=TIMERS["cpu"].contract,
            samples_ns=(1 / 3, 2e9),
            loops=7,
            stop=Stop.STABILISED,
            note="one set is larger than L2",
            span_s=(1234.5, 1235.25),
        ),
    ),
    invalid=(("hot/1", "an empty graph"),),
    launches=(
        Launch(
            function="softmax<float>",
            grid=(2**31 - 1, 65535, 1),
            block=(1024, 1, 1),
            registers=64,
            local_bytes=2120,
            shared_bytes=1 << 17,
            blocks_per_sm=1,
            occupancy=1 / 3,
            spill_bytes=4124,
        ),
    ),
    identity=(("_add configuration", "num_warps 4"),),
)


def _changed(**changes: Any) -> Any:
    return {**json.loads(json.dumps(encode_outcome(_OUTCOME))), **changes}


def _timing(**changes: Any) -> Any:
    (timing,) = _changed()["timings"]
    return _changed(timings=[{**timing, **changes}])


def _launch(**changes: Any) -> Any:
    (launch,) = _changed()["launches"]
    return _changed(launches=[{**launch, **changes}])


def test_what_is_said_arrives() -> None:
    line = encode_message("done", 3, _OUTCOME)
    assert line.count(b"\n") == 1
    assert decode_message(line) == ("done", 3, _OUTCOME)
    assert decode_message(encode_message("start", 0)) == ("start", 0, None)


@pytest.mark.parametrize(
    "value",
    [
        None,
        5,
        [],
        {},
        _changed(status="fine"),
        _changed(status=None),
        _changed(status="wrong_values"),
        _changed(metrics=5),
        _changed(metrics=[["name", 1.0, ""]]),
        _changed(metrics=[["name", "fast", "", "lower"]]),
        _changed(metrics=[["name", float("nan"), "", "lower"]]),
        _changed(metrics=[["name", 10**400, "", "lower"]]),
        _changed(metrics=[[5, 1.0, "", "lower"]]),
        _changed(metrics=[["name", 1.0, "", "up"]]),
        _changed(timings=[5]),
        _changed(invalid=[["hot/1"]]),
        _changed(invalid=[["hot/1", 5]]),
        _timing(samples_ns=[]),
        _timing(samples_ns=[0.0]),
        _timing(samples_ns=[-1.0]),
        _timing(samples_ns=[float("inf")]),
        _timing(samples_ns=["1 ns"]),
        _timing(samples_ns=None),
        _timing(loops=0),
        _timing(loops="many"),
        _timing(loops=float("inf")),
        _timing(stop="soon"),
        _timing(contract=[]),
        _timing(span_s=[1.0]),
        _timing(span_s=["then", 2.0]),
        _timing(span_s=[1.0, float("nan")]),
        _changed(identity=None),
        _changed(identity=[["device code"]]),
        _changed(identity=[["device code", 5]]),
        _changed(launches=None),
        _changed(launches=[5]),
        _changed(launches=[{}]),
        _launch(function=5),
        _launch(function="two\nlines"),
        _launch(function="\x1b[2J"),
        _launch(function="x" * 2000),
        _launch(grid=[1, 1]),
        _launch(grid=[0, 1, 1]),
        _launch(registers=-1),
        _launch(registers=1.5),
        _launch(shared_bytes=10**30),
        _launch(occupancy=1.01),
        _launch(occupancy=float("nan")),
        _launch(spill_bytes=-1),
        _launch(other=1),
    ],
)
def test_what_is_no_outcome_is_refused(value: Any) -> None:
    with pytest.raises(MalformedOutcomeError, match=r"^malformed "):
        decode_outcome(value)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"5",
        b"[]",
        b"{}",
        b"null",
        b"\xff",
        b'["start"]',
        b'["begin", 0, null]',
        b'["start", "0", null]',
        b'["done", 0, null]',
        b"[" * 100_000,
        b'["start", 1' + b"0" * 5_000 + b", null]",
    ],
)
def test_what_is_no_message_is_refused(line: bytes) -> None:
    with pytest.raises(MalformedOutcomeError):
        decode_message(line)


@given(st.binary(max_size=60))
def test_no_bytes_do_more_than_be_refused(line: bytes) -> None:
    try:
        event, task, outcome = decode_message(line)
    except MalformedOutcomeError:
        return
    assert (event in ("start", "done"), type(task), outcome is None) == (
        True,
        int,
        event == "start",
    )


@given(st.text(alphabet=st.characters(), max_size=50))
def test_words_arrive_fit_to_be_shown_and_stored(words: str) -> None:
    failed = replace(_OUTCOME, status=Status.TIMEOUT, timings=(), invalid=(("hot/1", words),))
    told = decode_message(encode_message("done", 0, replace(failed, message=words)))[2]
    assert told is not None
    for text in (told.message, told.invalid[0][1]):
        text.encode()
        assert all(
            each.isprintable() or each in "\n\t\N{REPLACEMENT CHARACTER}"
            for each in text
            if ord(each) < 0xA0
        )


def test_words_are_cut_to_what_a_row_should_carry() -> None:
    told = decode_outcome(_changed(message="x" * 10**6, timings=[], status="timeout"))
    assert len(told.message) <= 1000
