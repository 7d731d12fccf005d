"""What is refused as a run file, each with one clear line: damage, other versions, wrong values."""

import gzip
import io
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from run_files import document, refusal

from perfci.history import codec
from perfci.history.codec import decode, encode
from perfci.history.errors import RunFileError
from perfci.history.model import Run


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
