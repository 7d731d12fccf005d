import dataclasses
import gzip
import io
import json
import os
import random
import stat
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfci.history import codec
from perfci.history.codec import decode, encode, read_run_file, write_run_file
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


def document(run):
    return json.loads(gzip.decompress(encode(run)))


def refusal(body):
    """The one-line message with which a document (or bytes) is refused."""
    blob = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(RunFileError) as caught:
        decode(blob, origin="some/run.json.gz")
    message = str(caught.value)
    assert message.startswith("some/run.json.gz: ")
    assert message.isprintable()
    return message


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


# What is refused


def test_truncation_at_every_length_is_one_clear_error(make_run):
    blob = encode(make_run())
    for length in range(len(blob)):
        assert refusal(blob[:length])
    assert "truncated" in refusal(blob[:-1])
    assert "truncated" in refusal(blob[: len(blob) // 2])
    assert "empty" in refusal(b"")


def test_plain_json_truncation_at_every_length(make_run):
    text = gzip.decompress(encode(make_run()))
    for length in range(0, len(text), 7):
        refusal(text[:length])
    assert "truncated" in refusal(text[:-1])


@given(st.data())
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_bytes_end_in_a_run_or_a_run_file_error(make_run, data):
    blob = bytearray(gzip.decompress(encode(make_run())))
    for _ in range(data.draw(st.integers(1, 3))):
        blob[data.draw(st.integers(0, len(blob) - 1))] = data.draw(st.integers(0, 255))
    try:
        assert isinstance(decode(bytes(blob), origin="x"), Run)
    except RunFileError as error:
        assert str(error).isprintable()  # noqa: PT017


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda children: (
        st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3)
    ),
    max_leaves=8,
)


def places(value, path=()):
    yield path
    if isinstance(value, dict | list):
        keys = value if isinstance(value, dict) else range(len(value))
        for key in list(keys):
            yield from places(value[key], (*path, key))


@given(st.data())
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_json_in_any_place_ends_in_a_run_or_a_run_file_error(make_run, data):
    body = document(make_run())
    path = data.draw(st.sampled_from(list(places(body))[1:]))
    inner = body
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = data.draw(JSON)
    try:
        assert isinstance(decode(json.dumps(body).encode(), origin="x"), Run)
    except RunFileError as error:
        assert str(error).isprintable()  # noqa: PT017


@given(st.binary(max_size=60))
def test_any_bytes_are_refused(blob):
    assert refusal(blob) != "some/run.json.gz: "  # it says why


@given(st.binary(max_size=60))
def test_any_gzipped_bytes_are_refused(blob):
    assert refusal(gzip.compress(blob)) != "some/run.json.gz: "


def test_newer_version_asks_for_an_upgrade(make_run):
    body = document(make_run()) | {"version": 7, "something": "new"}
    assert refusal(body).endswith(
        "written by a newer perfci (format 7, this one reads up to 4): upgrade perfci"
    )
    assert "newer perfci" in refusal(body | {"version": 10**300})


@pytest.mark.parametrize("version", [0, -1, True, "1", None, 1.0])
def test_a_version_that_is_none_is_refused(make_run, version):
    assert "version" in refusal(document(make_run()) | {"version": version})


@pytest.mark.parametrize("body", [[], {}, "perfci-run", 3, None, {"format": "pyperf"}])
def test_other_json_is_no_run_file(body):
    assert "not a run file" in refusal(body)


def change(body, path, value):
    *outer, last = path
    for key in outer:
        body = body[key]
    body[last] = value


TIMED = ("measurements", 0)
SAMPLE = (*TIMED, "passes", 0, "samples_ns", 1)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ((*TIMED, "status"), "pased", "measurements[0].status: expected one of passed, build_fail"),
        ((*TIMED, "status"), "failed\x1b[2J", "measurements[0].status: expected one of"),
        ((*TIMED, "passes"), [], "measurements[0]: rope/fused/headline: samples exist if and only"),
        ((*TIMED, "kernel"), "../etc", "measurements[0].kernel: '../etc' is no name"),
        ((*TIMED, "case"), "a\nb", "measurements[0].case: 'a\\nb' is no name"),
        ((*TIMED, "variant"), "", "measurements[0].variant: '' is no name"),
        ((*TIMED, "variant"), "v" * 101, "measurements[0].variant"),
        ((*TIMED, "message"), "\x1b[2J", "measurements[0].message: '\\x1b[2J' holds control"),
        ((*TIMED, "message"), "\ud800", "measurements[0].message"),
        ((*TIMED, "identity", 0), ["a"], "measurements[0].identity[0]: expected a list of 2"),
        ((*TIMED, "metrics", 1, "name"), "rms_error", "metrics: entries 0 and 1 are the same metr"),
        ((*TIMED, "metrics", 0, "value"), None, "metrics[0].value: expected a number, found None"),
        ((*TIMED, "metrics", 0, "value"), True, "expected a number, found True"),
        ((*TIMED, "passes", 1, "index"), 1, "passes: entries 0 and 1 are the same pass"),
        ((*TIMED, "passes", 0, "loops"), 0, "passes[0].loops: 0 is below 1"),
        ((*TIMED, "passes", 0, "loops"), 1.5, "passes[0].loops: expected a whole number"),
        ((*TIMED, "passes", 0, "loops"), 2**64, "passes[0].loops: a whole number of more than 64"),
        ((*TIMED, "passes", 0, "samples_ns"), [], "samples exist if and only if"),
        ((*TIMED, "passes", 0, "samples_ns"), {}, "samples_ns: expected a list, found an object"),
        (SAMPLE, 0, "passes[0].samples_ns: sample 1 is 0.0 ns; a latency is above 0"),
        (SAMPLE, -3.5, "sample 1 is -3.5 ns"),
        (SAMPLE, 1e300, "sample 1 is 1e+300 ns"),
        (SAMPLE, 10**400, "samples_ns[1]: expected a finite number"),
        (SAMPLE, "12", "measurements[0].passes[0].samples_ns[1]: expected a number, found '12'"),
        (("run_id",), "a/../b", "run_id: 'a/../b' is no run id"),
        (("run_id",), "x" * 65, "run_id"),
        (("run_id",), "x\n", "run_id"),
        (("commit", "sha"), "HEAD", "commit.sha: 'HEAD' is no commit"),
        (("commit", "sha"), "A" * 40, "commit.sha"),
        (("commit", "parents", 0), "", "commit.parents: '' is no commit"),
        (("commit", "position"), -1, "commit.position: -1 is below 0"),
        (("commit", "branch"), "a\tb", "commit.branch"),
        (("commit", "committed_at"), "2026-01-01T00:00:00", "commit.committed_at: expected a time"),
        (("started_at",), "2026-01-01T00:00:00+02:00", "started_at: expected a time in UTC"),
        (("started_at",), "2026-13-01T00:00:00Z", "started_at: '2026-13-01T00:00:00Z': month must"),
        (("started_at",), 5, "started_at: expected a time in UTC"),
        (("duration_s",), -1, "duration_s: -1.0 is below 0"),
        (("environment", "testbed"), " ", "environment.testbed"),
        (("environment", "device", "kind"), "tpu", "device.kind: expected one of cpu, cuda"),
        (
            ("environment", "device"),
            [],
            "environment.device: expected an object, found a list of 0",
        ),
        (("statuss",), 1, "unknown key 'statuss'"),
        (("commit", "parnts"), 1, "commit: unknown key 'parnts' (did you mean 'parents'?)"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(make_run, path, value, said):
    body = document(make_run())
    change(body["run"], path, value)
    message = refusal(body)
    assert said in message
    assert "copy it again" in message


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (("measurements", 2, "status"), "measurements[2].status: missing"),
        (("commit", "dirty"), "commit.dirty: missing"),
        (("measurements",), "measurements: missing"),
    ],
)
def test_a_missing_key_is_named_with_its_place(make_run, path, said):
    body = document(make_run())
    inner = body["run"]
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    assert said in refusal(body)


def test_unknown_key_beside_the_run(make_run):
    assert "unknown key 'extra'" in refusal(document(make_run()) | {"extra": 1})


def test_missing_run(make_run):
    body = document(make_run())
    del body["run"]
    assert "run: missing" in refusal(body)


def test_the_same_cell_twice_is_refused(make_run):
    body = document(make_run())
    body["run"]["measurements"].append(body["run"]["measurements"][2])
    assert "measurements: entries 2 and 3 are the same cell" in refusal(body)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_not_finite_are_refused(make_run, constant):
    text = gzip.decompress(encode(make_run())).replace(b'"duration_s":12.5', b'"duration_s":%s')
    message = refusal(text % constant.encode())
    assert "no JSON number" in message or "finite" in message


def test_a_key_twice_in_one_object_is_refused(make_run):
    text = gzip.decompress(encode(make_run())).replace(b'"attempt":2', b'"attempt":1,"attempt":2')
    assert "key 'attempt' twice" in refusal(text)


def test_deep_nesting_is_refused():
    assert "nested too deep" in refusal(b"[" * 200_000)


def test_numbers_of_thousands_of_digits_are_refused():
    assert "thousands of digits" in refusal(b"9" * 10_000)


def test_a_gzip_bomb_is_refused_without_unpacking_it():
    bomb = io.BytesIO()
    with gzip.GzipFile(fileobj=bomb, mode="wb", compresslevel=1) as file:
        for _ in range(codec.LARGEST_RUN_BYTES // 2**20 + 1):
            file.write(bytes(2**20))
    assert len(bomb.getvalue()) < 2**20
    assert "larger than a run can be (128 MiB)" in refusal(bomb.getvalue())


def test_damaged_gzip_streams_are_refused(make_run):
    blob = bytearray(encode(make_run()))
    blob[len(blob) // 2] ^= 0xFF
    assert "damaged" in refusal(bytes(blob))
    assert "bytes follow its end" in refusal(encode(make_run()) * 2)


def test_the_name_of_a_file_cannot_reach_the_terminal_raw():
    with pytest.raises(RunFileError) as caught:
        decode(b"", origin="a\x1b[2J\nb")
    assert str(caught.value).isprintable()


# Writing


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
