"""Files of earlier versions of the format are read as what they meant."""

import gzip
import json

import pytest
import records

from perfci.history.codec import decode, encode
from perfci.history.errors import RunFileError


def _as_version(version, run):
    document = json.loads(gzip.decompress(encode(run)))
    document["version"] = version
    for row in document["run"]["measurements"]:
        for each in row["passes"]:
            for name in ("sm_mhz", "other_processes", "quarantine"):
                del each[name]
    if version < 3:
        del document["run"]["pair"]
        for row in document["run"]["measurements"]:
            del row["stop"]
            if version == 1:
                del row["launches"]
    return document


def _read(document):
    return decode(json.dumps(document).encode(), origin="old")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_earlier_versions_knew_less(version):
    run = records.run(records.measurement([1.0]), records.measurement([2.0], case="large"))
    assert _read(_as_version(version, run)) == run
    assert (run.pair, {(each.launches, each.stop) for each in run.measurements}) == (
        "",
        {((), None)},
    )


def test_a_version_must_have_what_it_knew():
    of_1 = _as_version(1, records.run(records.measurement([1.0])))
    with pytest.raises(RunFileError, match=r"old: measurements\[0\].launches: missing"):
        _read({**of_1, "version": 2})
    of_2 = _as_version(2, records.run(records.measurement([1.0])))
    with pytest.raises(RunFileError, match=r"old: pair: missing"):
        _read({**of_2, "version": 3})
    of_3 = _as_version(3, records.run(records.measurement([1.0])))
    with pytest.raises(RunFileError, match=r"old: measurements\[0\].passes\[0\].sm_mhz: missing"):
        _read({**of_3, "version": 4})


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("rows", [None, 3, {}, [None], ["row"], [{"passes": 1}]])
def test_a_damaged_earlier_version_is_refused(version, rows):
    document = _as_version(version, records.run(records.measurement([1.0])))
    document["run"]["measurements"] = rows
    with pytest.raises(RunFileError, match=r"old: measurements"):
        _read(document)


def test_a_row_of_nothing_but_passes_in_quarantine_is_refused():
    document = json.loads(gzip.decompress(encode(records.run(records.measurement([1.0, 2.0])))))
    for each in document["run"]["measurements"][0]["passes"]:
        each["quarantine"] = "why"
    with pytest.raises(RunFileError, match="0 of 2 passes not in quarantine"):
        _read(document)


@pytest.mark.parametrize("pair", ["two words", "x" * 65, "a/b"])
def test_a_pair_is_named_by_an_id(pair):
    document = json.loads(gzip.decompress(encode(records.run(records.measurement([1.0])))))
    document["run"]["pair"] = pair
    with pytest.raises(RunFileError, match=r"old: pair: .* is no pair's id"):
        _read(document)
