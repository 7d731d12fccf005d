"""verdict.json: written, read back, and refused where it is none."""

import json
from pathlib import Path
from typing import Any

import pytest
import rulings

from perfci.ci.conclusion import Conclusion
from perfci.ci.verdict_file import read_verdict_file, write_verdict_file
from perfci.errors import ParcelError, UsageError
from perfci.history.model import Verdict


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    ruling = rulings.ruling(rulings.red("h200"), notes=["x: no parcel"])
    verdict = read_verdict_file(write_verdict_file(tmp_path, ruling))
    assert (verdict.exit_code, verdict.conclusion) == (1, Conclusion.FAILURE)
    assert verdict.title == "1 slower; a100 did not report"
    assert verdict.head == ruling.head
    assert verdict.notes == ("x: no parcel",)
    h200, a100 = verdict.runners
    assert (h200.runner, h200.problem, h200.counts) == ("h200", "", ((Verdict.REGRESSION, 1),))
    assert (a100.runner, a100.problem, a100.exit_code) == ("a100", "did not report", 9)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(version=2),
        lambda d: d.update(format="perfci-run"),
        lambda d: d.update(more=1),
        lambda d: d["verdict"].update(head="main"),
        lambda d: d["verdict"].update(conclusion="splendid"),
        lambda d: d["verdict"].update(title="a\x1b[31m"),
        lambda d: d["verdict"].pop("act"),
    ],
)
def test_what_is_no_verdict_is_refused_in_one_line(tmp_path: Path, change: Any) -> None:
    path = write_verdict_file(tmp_path, rulings.ruling(rulings.red("h200")))
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(ParcelError, match=r"^verdict\.json: .*verdict") as raised:
        read_verdict_file(path)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "verdict.json"
    with pytest.raises(ParcelError, match="not there, no plain file"):
        read_verdict_file(path)
    path.write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(ParcelError, match="no verdict"):
        read_verdict_file(path)
    path.write_text("x" * (2**20 + 1), encoding="utf-8")
    with pytest.raises(ParcelError, match="too large"):
        read_verdict_file(path)
    link = tmp_path / "link.json"
    link.symlink_to(path)
    with pytest.raises(ParcelError, match="no plain file"):
        read_verdict_file(link)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="gone"):
        write_verdict_file(tmp_path / "gone", rulings.ruling())
