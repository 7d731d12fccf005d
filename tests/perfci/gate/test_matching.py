"""Which cells two sides have in common, and what is said of the others."""

from collections.abc import Callable
from pathlib import Path

import pytest
import scratch

from perfci.device import cpu
from perfci.gate.matching import Matching, match_cells
from perfci.history.model import Verdict
from perfci.kernel import discover
from perfci.selection import Selection

_TINY = '[[check]]\nname = "tiny"\ntier = "smoke"\ncount = 2\n\n'


def _match(
    tmp_path: Path, change: Callable[[Path], None], **selection: tuple[str, ...]
) -> Matching:
    """A base with one variant at three cases, beside what a change makes of it."""
    base, head = tmp_path / "base", tmp_path / "head"
    for root in (base, head):
        scratch.write_kernel(root)
    change(head)
    baseline, contender, proposed = (
        discover(base / "kernels"),
        discover(head / "kernels", workloads=base / "kernels"),
        discover(head / "kernels"),
    )
    return match_cells(baseline, contender, proposed, Selection(**selection), cpu())


def _edit(name: str, before: str, after: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        path = root / "kernels/axpb" / name
        text = path.read_text()
        assert before in text
        path.write_text(text.replace(before, after))

    return change


def _add_variant(root: Path) -> None:
    scratch.write_kernel(root, added__cpp=scratch.PLAIN)


def _add_kernel(root: Path) -> None:
    scratch.write_kernel(root, "another")


def _said(matching: Matching) -> dict[str, tuple[Verdict, str]]:
    return {each.cell.case.name: (each.verdict, each.reason) for each in matching.unpaired}


def test_nothing_changed(tmp_path: Path) -> None:
    matching = _match(tmp_path, lambda _: None)
    assert [(one.case.name, other.case.name) for one, other in matching.pairs] == [
        ("large", "large"),
        ("one", "one"),
        ("odd", "odd"),
    ]
    assert (matching.unpaired, matching.new) == ((), ())


@pytest.mark.parametrize(
    "change",
    [
        _edit("reference.py", "import torch", "# Comments are no code.\nimport torch"),
        _edit("cases.toml", 'tier = "smoke"', 'tier = "full"'),
        _edit("cases.toml", "[[bench]]", "[tolerance.float32]\nmax_ratio = 2.0\n\n[[bench]]"),
    ],
    ids=["comment", "tier", "tolerance"],
)
def test_what_is_the_base_s_to_say_changes_nothing(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    matching = _match(tmp_path, change)
    assert len(matching.pairs) == 3
    assert matching.unpaired == matching.new == ()


@pytest.mark.parametrize(
    ("change", "case", "verdict", "reason"),
    [
        (
            _edit("cases.toml", "count = 65536", "count = 4"),
            "large",
            Verdict.INCOMPARABLE,
            "the head changes the case, and with it what is measured",
        ),
        (
            _edit("cases.toml", "[[bench]]", "[[check]]"),
            "large",
            Verdict.INCOMPARABLE,
            "the head changes the case, and with it what is measured",
        ),
        (
            _edit("reference.py", "return a * x + b", "return b + a * x"),
            "one",
            Verdict.INCOMPARABLE,
            "the head changes the reference, and with it what is measured",
        ),
        (
            _edit("cases.toml", 'name = "one"', 'name = "single"'),
            "one",
            Verdict.MISSING,
            "the head has no such case",
        ),
        (
            lambda root: (root / "kernels/axpb/plain.cpp").rename(root / "kernels/axpb/slim.cpp"),
            "odd",
            Verdict.MISSING,
            "the head has no such variant",
        ),
        (
            lambda root: (root / "kernels/axpb").rename(root / "kernels/axpy"),
            "odd",
            Verdict.MISSING,
            "the head has no such kernel",
        ),
        (
            _edit("plain.cpp", "#include", "// perfci: max = { count = 2000 }\n#include"),
            "large",
            Verdict.MISSING,
            "the head's variant does not take it: count = 65536 is above the declared maximum 2000",
        ),
        (
            _edit("plain.cpp", "#include", '// perfci: devices = ["cuda"]\n#include'),
            "large",
            Verdict.MISSING,
            "the head's variant does not take it: declared for cuda only",
        ),
    ],
)
def test_what_the_head_takes_away_or_changes_is_not_compared(
    tmp_path: Path, change: Callable[[Path], None], case: str, verdict: Verdict, reason: str
) -> None:
    matching = _match(tmp_path, change)
    assert _said(matching)[case] == (verdict, reason)
    assert case not in {one.case.name for one, _ in matching.pairs}


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (_add_variant, {("axpb", "added", case) for case in ("large", "one", "odd")}),
        (_add_kernel, {("another", "plain", case) for case in ("large", "one", "odd")}),
        (
            _edit("cases.toml", "[[bench]]", _TINY + "[[bench]]"),
            {("axpb", "plain", "tiny")},
        ),
    ],
    ids=["variant", "kernel", "case"],
)
def test_what_only_the_head_has_is_new(
    tmp_path: Path, change: Callable[[Path], None], names: set[tuple[str, str, str]]
) -> None:
    matching = _match(tmp_path, change)
    assert {(c.kernel.name, c.variant.name, c.case.name) for c in matching.new} == names
    assert len(matching.pairs) == 3


def test_only_what_is_chosen_is_matched(tmp_path: Path) -> None:
    matching = _match(tmp_path, _add_variant, cases=("one",), variants=("plain",))
    assert [one.case.name for one, _ in matching.pairs] == ["one"]
    assert matching.new == ()
