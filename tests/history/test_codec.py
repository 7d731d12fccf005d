import dataclasses
import gzip
import os
import random
import stat
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfci.history.codec import decode, encode, read_run_file, write_growing, write_run_file
from perfci.history.errors import RunFileError
from perfci.history.model import (
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
    Status,
    Stop,
)
from perfci.history.text import is_safe

# Round trip

NAMES = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}", fullmatch=True)
TEXT = st.text(max_size=20).filter(is_safe)
LINES = TEXT.filter(lambda text: not set(text) & set("\n\t"))
FILLED = LINES.filter(str.strip)
SHAS = st.from_regex(r"[0-9a-f]{40}|[0-9a-f]{64}", fullmatch=True)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
COUNTS = st.integers(1, 2**40)
ZONES = st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30))])
TIMES = st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=ZONES)  # noqa: DTZ001


def optional(strategy):
    return st.none() | strategy


def tuples(strategy, **options):
    return st.lists(strategy, max_size=3, **options).map(tuple)


CLOCKS = st.builds(Clock, sm_mhz=optional(NUMBERS), throttle_reasons=tuples(TEXT))
PASSES = st.builds(
    Pass,
    index=st.integers(0, 99),
    samples_ns=st.lists(st.floats(0, 1e18, exclude_min=True), min_size=1, max_size=9).map(tuple),
    loops=COUNTS,
    stop=st.sampled_from(Stop),
    clocks=tuples(CLOCKS),
    sm_mhz=optional(st.floats(0, 1e9)),
    other_processes=optional(st.integers(0, 99)),
    quarantine=LINES,
)
CONTRACTS = st.builds(Contract, timer=NAMES, version=COUNTS, l2=TEXT, warm_up=TEXT, inputs=TEXT)
METRICS = st.builds(
    Metric, name=NAMES, value=NUMBERS, unit=LINES, direction=st.sampled_from(Direction)
)
SIZES = st.tuples(COUNTS, COUNTS, COUNTS)
LAUNCHES = st.builds(
    Launch,
    function=LINES,
    grid=SIZES,
    block=SIZES,
    registers=COUNTS,
    local_bytes=COUNTS,
    shared_bytes=COUNTS,
    blocks_per_sm=COUNTS,
    occupancy=st.floats(0, 1),
    spill_bytes=optional(COUNTS),
)


@st.composite
def measurements(draw):
    status, contract = draw(st.sampled_from(Status)), draw(optional(CONTRACTS))
    timed = status is Status.PASSED and contract is not None
    passes = st.lists(PASSES, min_size=1, max_size=3, unique_by=lambda each: each.index).filter(
        lambda several: not all(each.quarantine for each in several)
    )
    return Measurement(
        kernel=draw(NAMES),
        case=draw(NAMES),
        variant=draw(NAMES),
        contract=contract,
        status=status,
        message=draw(TEXT),
        passes=tuple(draw(passes)) if timed else (),
        metrics=draw(tuples(METRICS, unique_by=lambda each: each.name)),
        workload_digest=draw(LINES),
        source_digest=draw(LINES),
        identity=draw(tuples(st.tuples(TEXT, TEXT))),
        launches=draw(tuples(LAUNCHES)),
        stop=draw(optional(st.sampled_from(Stop))),
    )


RUNS = st.builds(
    Run,
    pair=st.from_regex(r"[A-Za-z0-9_-]{0,64}", fullmatch=True),
    run_id=st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True),
    commit=st.builds(
        Commit,
        sha=SHAS,
        committed_at=TIMES,
        parents=tuples(SHAS),
        position=optional(COUNTS),
        branch=optional(LINES),
        subject=LINES,
        dirty=optional(st.just("0123456789abcdef")),
    ),
    environment=st.builds(
        Environment,
        testbed=FILLED,
        device=st.builds(
            Device,
            kind=st.sampled_from(["cpu", "cuda"]),
            model=FILLED,
            sm_count=optional(COUNTS),
        ),
        torch=TEXT,
        python=TEXT,
        os=TEXT,
        host=LINES,
    ),
    started_at=TIMES,
    duration_s=st.floats(0, 1e9),
    trigger=NAMES,
    attempt=COUNTS,
    perfci_version=LINES,
    measurements=tuples(
        measurements(), unique_by=lambda each: (each.kernel, each.case, each.variant)
    ),
)


@given(RUNS)
@settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
def test_round_trip(run):
    blob = encode(run)
    assert decode(blob, origin="x") == run
    assert decode(gzip.decompress(blob), origin="x") == run
    assert encode(decode(blob, origin="x")) == blob
    assert gzip.decompress(encode(run, quickly=True)) == gzip.decompress(blob)


def test_equal_runs_give_equal_bytes_without_a_time_stamp(make_run):
    assert encode(make_run()) == encode(make_run())
    assert encode(make_run())[4:8] == bytes(4)


def test_files_of_runs_that_grow_together_are_replaced_together(make_run, tmp_path):
    run = make_run()
    first, second, nowhere = tmp_path / "a.json.gz", tmp_path / "b.json.gz", tmp_path / "no/c"
    write_growing([(first, run), (second, run)])
    later = dataclasses.replace(run, duration_s=99.0)
    with pytest.raises(RunFileError, match="c: cannot be written: No such file or directory"):
        write_growing([(first, later), (nowhere, later)])
    assert [read_run_file(each) for each in (first, second)] == [run, run]
    write_growing([(first, later), (second, later)])
    assert [read_run_file(each) for each in (first, second)] == [later, later]
    assert sorted(tmp_path.iterdir()) == [first, second]


def test_a_run_that_grows_is_written_as_a_whole_one_is(make_run):
    run = make_run()
    text = '"passes":[],"measurements":[]'
    row = dataclasses.replace(run.measurements[0], message=text)
    first, *others = row.passes
    for passes in ((first,), (first, *others), (dataclasses.replace(first, loops=9), *others)):
        grown = dataclasses.replace(row, passes=passes)
        grown = dataclasses.replace(run, measurements=(grown, *run.measurements[1:]))
        assert decode(encode(grown, quickly=True), origin="x") == grown
    broken = dataclasses.replace(run, duration_s=float("nan"))
    with pytest.raises(RunFileError, match="duration_s"):
        encode(broken, quickly=True)
    broken = dataclasses.replace(first, samples_ns=(float("nan"),))
    broken = dataclasses.replace(run, measurements=(dataclasses.replace(row, passes=(broken,)),))
    with pytest.raises(RunFileError, match="cannot be written"):
        encode(broken, quickly=True)


def test_every_digit_of_a_sample_survives(make_run):
    run = make_run()
    assert run.measurements[0].passes[0].samples_ns[1] == 1e-3 / 3
    assert decode(encode(run), origin="x") == run
    assert repr(1e-3 / 3).encode() in gzip.decompress(encode(run))


def test_a_large_run_stays_well_below_two_megabytes(make_run):
    source = random.Random(7)
    contract = Contract(timer="cpu", version=1, l2="none", warm_up="a", inputs="b")
    cells = tuple(
        Measurement(
            kernel="k",
            case=f"c{cell}",
            variant="v",
            contract=contract,
            status=Status.PASSED,
            passes=tuple(
                Pass(index=p, samples_ns=tuple(source.uniform(1e4, 2e4) for _ in range(150)))
                for p in range(10)
            ),
        )
        for cell in range(24)
    )
    run = make_run(measurements=cells)
    blob = encode(run)
    assert len(blob) < 600_000
    assert decode(blob, origin="x") == run


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_run_that_could_not_be_read_back_is_not_written(make_run, tmp_path, value):
    run = dataclasses.replace(make_run(), duration_s=value)
    with pytest.raises(RunFileError, match="run r1 cannot be written: duration_s: expected a fin"):
        write_run_file(tmp_path / "run.json.gz", run)
    assert list(tmp_path.iterdir()) == []


def test_a_time_without_zone_is_not_written(make_run):
    run = dataclasses.replace(make_run(), started_at=datetime(2026, 1, 1))  # noqa: DTZ001
    with pytest.raises(RunFileError, match="started_at: expected a time in UTC"):
        encode(run)


def test_a_file_is_written_whole_and_replaces_the_old_one(make_run, tmp_path):
    path = tmp_path / "run.json.gz"
    path.write_text("old")
    write_run_file(path, make_run())
    assert read_run_file(path) == make_run()
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_has_ordinary_permissions(make_run, tmp_path):
    mask = os.umask(0o022)
    try:
        write_run_file(tmp_path / "r", make_run())
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "r").stat().st_mode) == 0o644


def test_folders_that_are_not_there_are_named(make_run, tmp_path):
    path = tmp_path / "no" / "run.json.gz"
    with pytest.raises(RunFileError, match=r"run\.json\.gz: cannot be written: No such file"):
        write_run_file(path, make_run())
    with pytest.raises(RunFileError, match=r"run\.json\.gz: cannot be read: No such file"):
        read_run_file(path)


def test_a_folder_in_the_files_place_is_an_error_and_leaves_nothing(make_run, tmp_path):
    path = tmp_path / "run.json.gz"
    path.mkdir()
    with pytest.raises(RunFileError, match="cannot be written: Is a directory"):
        write_run_file(path, make_run())
    with pytest.raises(RunFileError, match="cannot be read: Is a directory"):
        read_run_file(path)
    assert list(tmp_path.iterdir()) == [path]
