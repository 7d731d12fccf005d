"""Parcels: what a runner wrote is what is read, and nothing else is read as one."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gates
import parcels
import pytest

from perfci.ci.parcel import FILE, LARGEST_PARCEL_BYTES, decode, read_parcel, write_parcel
from perfci.errors import ParcelError
from perfci.history.model import Verdict
from perfci.history.plain import plain


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    parcel = parcels.parcel(runs=("a.json.gz", "b.json.gz"))
    folder = parcels.write(tmp_path / "h200", parcel)
    assert read_parcel(folder) == parcel
    assert sorted(each.name for each in folder.iterdir()) == [
        "a.json.gz",
        "b.json.gz",
        "gate.log",
        FILE,
    ]


def test_a_gate_in_it_is_the_gate_that_was_decided() -> None:
    gate = gates.mixed_gate(
        accepted=frozenset({gates.comparison(Verdict.REGRESSION, "v0").key}),
        changes=("a", "b"),
        environment_change="torch 2.12 → 2.13",
    )
    read = parcels.judgement(gate)
    assert [each.key for each in read.comparisons] == [each.key for each in gate.comparisons]
    assert [each.verdict for each in read.comparisons] == [e.verdict for e in gate.comparisons]
    assert [each.key.variant for each in read.comparisons if each.accepted] == ["v0"]
    assert (read.base, read.environment) == (gate.base, gate.environment)
    assert read.head.sha == gate.head.sha
    assert (read.environment_change, read.changes) == (gate.environment_change, ("a", "b"))
    assert read.means
    assert read.load == ""
    assert parcels.judgement(gates.busy_gate()).load.startswith("A busy machine: others used 40 %")


def _text(change: Callable[[dict[str, Any]], object]) -> bytes:
    body = json.loads(json.dumps(plain(parcels.parcel())))
    document = {"format": "perfci-parcel", "version": 1, "parcel": body}
    change(document)
    return json.dumps(document).encode()


def _set(**fields: Any) -> Callable[[dict[str, Any]], object]:
    return lambda document: document["parcel"].update(fields)


_STEP = {"name": "a", "exit_code": 0, "duration_s": 1, "error": "", "log": "a.log"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_set(head="main"), "'main' is no commit"),
        (_set(base="0" * 40), "is no commit"),
        (_set(runs=["../../etc/passwd"]), "no name of a file"),
        (_set(runs=["/etc/passwd"]), "no name of a file"),
        (_set(runs=[".git"]), "no name of a file"),
        (_set(runs=["parcel.json"]), "a file is named twice"),
        (_set(runs=["gate.log"]), "a file is named twice"),
        (_set(exit_code=-9), "-9 is no exit code"),
        (_set(exit_code=True), "expected a whole number, found True"),
        (_set(attempt=0), "attempt 0"),
        (_set(act="deploy"), "act: expected one of run, gate"),
        (_set(runner="a\nb"), "control characters|no name of a runner"),
        (_set(runner="<img src=x>"), "no name of a runner"),
        (_set(steps=[{**_STEP, "log": "a/b"}]), "no name of a file"),
        (_set(steps=[{**_STEP, "duration_s": -1}]), "took -1.0 s"),
        (_set(error="a\x1b[31m"), "control characters"),
        (_set(more=1), "unknown key 'more'"),
        (lambda d: d["parcel"].pop("gates"), "gates: missing"),
        (lambda d: d["parcel"]["gates"][0].update(exit_code="0"), "gates[0].exit_code"),
        (lambda d: d["parcel"]["gates"][0]["comparisons"][0].pop("accepted"), "accepted: missing"),
        (lambda d: d.update(version=2), "a parcel of version 2, this perfci reads 1"),
        (lambda d: d.update(version=True), "a parcel of version True"),
        (lambda d: d.update(format="perfci-run"), "no parcel (no"),
        (lambda d: d.update(more=1), "other keys"),
    ],
)
def test_what_is_no_parcel_is_refused_in_one_line(
    change: Callable[[dict[str, Any]], object], words: str
) -> None:
    with pytest.raises(ParcelError) as refused:
        decode(_text(change), origin="there/parcel.json")
    message = str(refused.value)
    assert message.startswith("there/parcel.json: ")
    assert "\n" not in message
    assert any(each in message for each in words.split("|"))


@pytest.mark.parametrize(
    "text",
    [b"", b"\x80", b"[" * 200_000, b"{", b"null", b'{"format": 1, "format": 2}', b"NaN"],
    ids=["empty", "binary", "deep", "cut", "null", "twice", "nan"],
)
def test_what_is_no_json_object_is_refused(text: bytes) -> None:
    with pytest.raises(ParcelError, match=r"^p: no parcel"):
        decode(text, origin="p")


def test_what_is_larger_than_a_parcel_is_not_read() -> None:
    with pytest.raises(ParcelError, match="larger than a parcel"):
        decode(b" " * (LARGEST_PARCEL_BYTES + 1), origin="p")


def test_a_folder_without_all_of_its_files_has_not_reported(tmp_path: Path) -> None:
    with pytest.raises(ParcelError, match=r"parcel\.json: not there"):
        read_parcel(tmp_path)
    folder = parcels.write(tmp_path / "h200", parcels.parcel(runs=("a.json.gz",)))
    (folder / "a.json.gz").unlink()
    with pytest.raises(ParcelError, match=r"a\.json\.gz: not there"):
        read_parcel(folder)


@pytest.mark.parametrize("name", [FILE, "gate.log"])
def test_a_link_is_not_followed(tmp_path: Path, name: str) -> None:
    folder = parcels.write(tmp_path / "h200", parcels.parcel())
    (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ParcelError, match="no plain file"):
        read_parcel(folder)


def test_a_parcel_that_could_not_be_read_back_is_not_written(tmp_path: Path) -> None:
    bad = replace(parcels.parcel(), error="\udcff")
    with pytest.raises(ParcelError, match="cannot be written"):
        write_parcel(tmp_path, bad)
    with pytest.raises(ParcelError, match="cannot be written"):
        write_parcel(tmp_path / "nowhere", parcels.parcel())
    assert list(tmp_path.iterdir()) == []
