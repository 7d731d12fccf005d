"""Which cells an invocation means."""

from pathlib import Path

import pytest
import scratch

from perfci.errors import UsageError
from perfci.kernel import Kernel, discover
from perfci.selection import Selection, left_out, select, variants_of

_CASES = """\
[[bench]]
name = "quick"
tier = "smoke"
count = 1

[[bench]]
name = "slow"
count = 2

[[check]]
name = "gpu_only"
tier = "smoke"
devices = ["cuda"]
count = 3

[[check]]
name = "odd"
tier = "smoke"
count = 5
"""


@pytest.fixture
def kernels(tmp_path: Path) -> list[Kernel]:
    scratch.write_kernel(
        tmp_path,
        "first",
        cases__toml=_CASES,
        plain__cpp=scratch.PLAIN,
        fast__cu="",
        library__py="# perfci: peer = true\n",
    )
    scratch.write_kernel(tmp_path, "second", cases__toml=_CASES, plain__cpp=scratch.PLAIN)
    return discover(tmp_path / "kernels")


def _cells(kernels: list[Kernel], kind: str = "cpu", /, **chosen: object) -> list[str]:
    selection = Selection(**chosen)
    return [
        f"{cell.kernel.name}/{cell.variant.name}/{cell.case.name}"
        for cell in select(kernels, selection, kind)
    ]


def test_all_smoke_cases_are_meant_unless_told_otherwise(kernels: list[Kernel]) -> None:
    assert _cells(kernels) == [
        "first/library/quick",
        "first/plain/quick",
        "first/plain/odd",
        "second/plain/quick",
        "second/plain/odd",
    ]


def test_variants_come_once_and_in_order(kernels: list[Kernel]) -> None:
    variants = variants_of(select(kernels, Selection(), "cpu"))
    keys = [("first", "library"), ("first", "plain"), ("second", "plain")]
    assert [each.key for each in variants] == keys


def test_the_full_tier_holds_all_cases(kernels: list[Kernel]) -> None:
    assert _cells(kernels, tier="full", kernels=("second",)) == [
        "second/plain/quick",
        "second/plain/slow",
        "second/plain/odd",
    ]


def test_a_case_that_is_named_is_meant_whatever_its_tier(kernels: list[Kernel]) -> None:
    assert _cells(kernels, cases=("slow",), variants=("plain",)) == [
        "first/plain/slow",
        "second/plain/slow",
    ]


def test_a_device_has_its_own_variants_and_cases(kernels: list[Kernel]) -> None:
    assert _cells(kernels, "cuda", kernels=("first",)) == [
        "first/fast/quick",
        "first/fast/gpu_only",
        "first/fast/odd",
        "first/library/quick",
    ]
    assert [each.name for each in left_out(kernels, Selection(), "cuda")] == ["plain", "plain"]
    assert [each.name for each in left_out(kernels, Selection(), "cpu")] == ["fast"]
    assert left_out(kernels, Selection(variants=("plain",)), "cpu") == []


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"kernels": ("frist",)}, "no kernel 'frist' (did you mean 'first'?)"),
        ({"kernels": ("second",), "variants": ("fast",)}, "no variant 'fast' (known: plain)"),
        ({"cases": ("quick", "slwo")}, "no case 'slwo' (did you mean 'slow'?)"),
    ],
)
def test_a_name_that_nothing_has_is_refused(
    kernels: list[Kernel], chosen: dict[str, tuple[str, ...]], message: str
) -> None:
    with pytest.raises(UsageError) as raised:
        _cells(kernels, **chosen)
    assert str(raised.value) == message


def test_of_many_known_names_the_nearest_are_said(tmp_path: Path) -> None:
    names = [f"tile_{number}" for number in range(30)]
    scratch.write_kernel(tmp_path, **{f"{name}__cpp": "" for name in (*names, "plain")})
    kernels = discover(tmp_path / "kernels")
    with pytest.raises(UsageError) as raised:
        _cells(kernels, variants=("pxxn",))
    known = str(raised.value)
    assert known.startswith("no variant 'pxxn' (known: plain, tile_0, ")
    assert known.endswith(" and 23 more)")
    with pytest.raises(UsageError, match=r"\(did you mean 'tile_\d+', 'tile_\d+' or 'tile_\d+'\?"):
        _cells(kernels, variants=("tile",))


def test_nothing_is_known_where_there_is_no_kernel() -> None:
    with pytest.raises(UsageError, match=r"no kernel 'any' \(none of that name is known\)"):
        _cells([], kernels=("any",))
