"""Files of earlier versions of the format are read as what they meant."""

import gzip
import json

import pytest
import records

from perfci.history.codec import decode, encode
from perfci.history.errors import RunFileError


def _as_version_1(run):
    document = json.loads(gzip.decompress(encode(run)))
    document["version"] = 1
    for row in document["run"]["measurements"]:
        del row["launches"]
    return document


def test_version_1_knew_of_no_launches():
    run = records.run(records.measurement([1.0]), records.measurement([2.0], case="large"))
    read = decode(json.dumps(_as_version_1(run)).encode(), origin="old.json.gz")
    assert read == run
    assert all(each.launches == () for each in read.measurements)


def test_version_2_must_have_them():
    document = _as_version_1(records.run(records.measurement([1.0]))) | {"version": 2}
    with pytest.raises(RunFileError, match=r"old: measurements\[0\].launches: missing"):
        decode(json.dumps(document).encode(), origin="old")


@pytest.mark.parametrize("rows", [None, 3, {}, [None], ["row"]])
def test_a_damaged_version_1_is_refused(rows):
    document = _as_version_1(records.run(records.measurement([1.0])))
    document["run"]["measurements"] = rows
    with pytest.raises(RunFileError, match=r"old: measurements"):
        decode(json.dumps(document).encode(), origin="old")
