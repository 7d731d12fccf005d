"""What a bisection keeps: as it was, of its own question, or one line that says why not."""

from pathlib import Path

import pytest
import records

from perfci.bisect.bisection import Likeness
from perfci.bisect.notebook import Finding, Notebook, Proof, Question, Symptom
from perfci.decision.stats import Estimate
from perfci.errors import ConfigurationError


def _question(good: str = "a" * 40) -> Question:
    return Question(
        good=good,
        bad="b" * 40,
        kernel="axpb",
        variant="plain",
        case="large",
        timer="",
        environment=records.environment("bench"),
        settings="",
    )


_CHANGE = Estimate(mean=0.26, variance=1e-5, degrees=7.5)
_PROOF = Proof(symptom=Symptom.SLOWER, timer="cpu/1", change=_CHANGE, codes=("g", "b"))


def _filled(cache: Path) -> Notebook:
    notebook = Notebook(cache, _question())
    notebook.prove(_PROOF)
    notebook.add(Finding(sha="c" * 40, likeness=Likeness.GOOD, change=_CHANGE, error=1e-4))
    notebook.add(Finding(sha="d" * 40, likeness=Likeness.SKIPPED, reason="does not build"))
    return notebook


def test_what_was_found_is_there_again(tmp_path: Path) -> None:
    filled = _filled(tmp_path)
    again = Notebook(tmp_path, _question())
    assert (again.proof, again.findings) == (_PROOF, filled.findings)
    assert len(again.findings) == 2
    assert [each.name for each in filled.path.parent.iterdir()] == [filled.path.name]


def test_another_question_has_notes_of_its_own(tmp_path: Path) -> None:
    _filled(tmp_path)
    other = Notebook(tmp_path, _question(good="e" * 40))
    assert (other.proof, other.findings) == (None, ())


def test_an_answer_ends_the_notes(tmp_path: Path) -> None:
    filled = _filled(tmp_path)
    filled.close()
    assert Notebook(tmp_path, _question()).findings == ()
    filled.close()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "no notes of a bisection"),
        (b"{", "no notes of a bisection"),
        (b"[" * 100_000, "no notes of a bisection"),
        (b'{"form": 1}', "no notes of a bisection"),
        (b"\xff\xfe", "no notes of a bisection"),
    ],
    ids=["empty", "half", "deep", "too little", "no text"],
)
def test_a_broken_file_is_one_line(tmp_path: Path, text: bytes, words: str) -> None:
    path = _filled(tmp_path).path
    path.write_bytes(text)
    with pytest.raises(ConfigurationError, match=words) as raised:
        Notebook(tmp_path, _question())
    assert str(raised.value).startswith(f"{path}: ")
    assert str(raised.value).endswith("; remove it to begin anew")
    assert "\n" not in str(raised.value)


def test_notes_of_another_question_or_form_are_not_believed(tmp_path: Path) -> None:
    filled = _filled(tmp_path)
    own = filled.path.read_text()
    for foreign in (own.replace("a" * 40, "f" * 40), own.replace('"form": 1', '"form": 2')):
        assert foreign != own
        filled.path.write_text(foreign)
        with pytest.raises(ConfigurationError, match="the notes of another question"):
            Notebook(tmp_path, _question())
