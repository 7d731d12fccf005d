"""What is said to differ between the code and the launches of two runs, and what is not."""

from dataclasses import replace
from typing import Any

import pytest
from records import cell, launch, summary

from perfci.decision.compare import Side, compare
from perfci.history.model import Status
from perfci.reports.comparison import comparison_table
from perfci.reports.differences import describe_differences, find_differences

_LAUNCH = launch(
    function="rope",
    grid=(128, 1, 1),
    block=(384, 1, 1),
    registers=56,
    shared_bytes=1024,
    blocks_per_sm=2,
    occupancy=0.5,
)
_CODE = (("device code", "sm_90 aa11"), ("host code", "bb22"))


def _described(
    before: dict[str, Any], after: dict[str, Any], launches: tuple[Any, Any] = ((), ())
) -> tuple[str, ...]:
    sides = zip((before, after), launches, strict=True)
    cells = [
        replace(cell((1.0,)), identity=tuple(identity.items()), launches=own)
        for identity, own in sides
    ]
    return describe_differences(*cells)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {}, ()),
        ({}, dict(_CODE), ()),
        (dict(_CODE), dict(_CODE), ("the same code",)),
        (dict(_CODE), {"device code": "sm_90 aa11"}, ()),
        ({"code not read": "x", **dict(_CODE)}, {"code not read": "x", **dict(_CODE)}, ()),
        (dict(_CODE), {**dict(_CODE), "host code": "cc33"}, ("host code changed",)),
        (
            dict(_CODE),
            {"device code": "sm_90 dd44", "host code": "cc33"},
            ("device code changed", "host code changed"),
        ),
        ({"source": "a"}, {"source": "b"}, ("source changed",)),
        ({"deterministic": "yes"}, {"deterministic": "no"}, ("deterministic yes → no",)),
        (
            {"_add configuration": "num_warps 4, num_stages 2, BLOCK 64"},
            {"_add configuration": "num_warps 8, num_stages 2, BLOCK 128"},
            ("_add configuration num_warps 4 → 8, BLOCK 64 → 128",),
        ),
        (
            {"_add configuration": "num_warps 4, BLOCK 64"},
            {"_add configuration": "num_warps 4, num_ctas 2, BLOCK 64"},
            ("_add configuration num_warps 4, BLOCK 64 → num_warps 4, num_ctas 2, BLOCK 64",),
        ),
    ],
)
def test_code_and_configuration(
    before: dict[str, str], after: dict[str, str], expected: tuple[str, ...]
) -> None:
    assert _described(before, after) == expected


_SPILLING = replace(_LAUNCH, registers=64, spill_bytes=128, local_bytes=64)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((), (_LAUNCH,), ()),
        ((_LAUNCH,), (_LAUNCH,), ()),
        ((_LAUNCH,), (replace(_LAUNCH, grid=(64, 1, 1)),), ("launch 128 × 384 → 64 × 384",)),
        (
            (_LAUNCH,),
            (_SPILLING,),
            ("registers 56 → 64, spills 0 B → 128 B, local memory 0 B → 64 B",),
        ),
        ((_LAUNCH,), (replace(_LAUNCH, spill_bytes=None),), ()),
        ((_LAUNCH,), (_LAUNCH, _LAUNCH), ("launches 1 → 2",)),
        (
            (_LAUNCH, _LAUNCH),
            (_LAUNCH, replace(_LAUNCH, function="turn")),
            ("kernel 2: kernel rope → turn",),
        ),
    ],
)
def test_launches(before: Any, after: Any, expected: tuple[str, ...]) -> None:
    assert _described({}, {}, (before, after)) == expected


def test_the_same_code_launched_in_the_same_way_is_said_to_be() -> None:
    both = (_LAUNCH,), (_LAUNCH,)
    assert _described(dict(_CODE), dict(_CODE), both) == (
        "the same code, launched in the same way",
    )


def test_the_newest_runs_that_passed_are_told_apart() -> None:
    first = replace(cell((1.0,), run_id="a"), identity=(("source", "old"),))
    newer = replace(first, run_id="b", identity=(("source", "new"),))
    failed = replace(newer, run_id="c", status=Status.TIMEOUT, latency=None, identity=())
    sides = [
        Side([summary(each.run_id) for each in cells], cells)
        for cells in ((first,), (newer, failed))
    ]
    assert [*find_differences(*sides).values()] == [("source changed",)]


def test_a_cell_that_got_slower_says_what_differs_and_one_that_did_not_says_nothing() -> None:
    steady, slow = (1000.0, 1001.0, 999.0), (2000.0, 2002.0, 1998.0)
    before = [
        replace(cell(steady, variant=name), identity=_CODE, launches=(_LAUNCH,))
        for name in ("plain", "tiled")
    ]
    changed = {"identity": (("device code", "sm_90 dd44"), _CODE[1]), "launches": (_SPILLING,)}
    after = [
        replace(cell(latency, variant=name), **changed)
        for name, latency in (("plain", steady), ("tiled", slow))
    ]
    sides = [Side([summary()], cells) for cells in (before, after)]
    lines = comparison_table(compare(*sides), differences=find_differences(*sides))
    text = "\n".join(lines)
    assert text.count("device code changed") == 1
    start = next(i for i, line in enumerate(lines) if line.startswith("▲ slower · "))
    assert lines[start + 1 : start + 3] == [
        "    device code changed; registers 56 → 64, spills 0 B → 128 B, local memory 0 B",
        "    → 64 B",
    ]
