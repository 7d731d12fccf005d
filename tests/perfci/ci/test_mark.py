"""The mark of a report: written, read back, ordered."""

from dataclasses import replace

import pytest

from perfci.ci.mark import Mark, marked, read_id, read_mark, write_id

_MARK = Mark(check="perfci", head="a" * 40, run_id=7, attempt=1, started_at="2026-01-31T12:00:00Z")


@pytest.mark.parametrize(
    "check", ["perfci", "perfci (libs/a b)", "perfci (-->)", "ü=%\n", "x" * 90]
)
def test_a_mark_is_read_back(check: str) -> None:
    mark = replace(_MARK, check=check)
    assert read_id(write_id(mark)) == mark
    complete, body = marked(mark, "text\nof several lines")
    assert body.count("-->") == 1
    assert read_mark(body) == complete
    assert read_mark(body.replace("\n", "\r\n")) == complete


@pytest.mark.parametrize(
    "body",
    ["", "hello", "<!-- perfci -->", "<!-- perfci check=perfci head=xyz run=1 attempt=1 -->"],
)
def test_what_is_no_mark_is_none(body: str) -> None:
    assert read_mark(body) is None


def test_a_mark_counts_at_the_beginning_only() -> None:
    assert read_mark("quoted:\n" + marked(_MARK, "text")[1]) is None


def test_another_text_has_another_mark() -> None:
    assert marked(_MARK, "one")[0] != marked(_MARK, "two")[0]


def test_the_attempt_that_was_started_later_is_newer() -> None:
    rerun = replace(_MARK, attempt=2, started_at="2026-01-31T14:00:00Z")
    other = replace(_MARK, run_id=8, started_at="2026-01-31T13:00:00Z")
    assert rerun.is_newer_than(_MARK)
    assert other.is_newer_than(_MARK)
    assert rerun.is_newer_than(other)
    assert not _MARK.is_newer_than(replace(_MARK, digest="0" * 16))


def test_a_verdict_is_newer_than_the_word_that_there_will_be_one() -> None:
    ended = replace(_MARK, is_ended=True)
    assert ended.is_newer_than(_MARK)
    assert not _MARK.is_newer_than(ended)
    assert ended.is_of_the_attempt_of(_MARK)
    assert read_id(write_id(ended)) == ended
