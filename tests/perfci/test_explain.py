"""What an explanation makes of cells; its lines are tested in cli/test_explain.py."""

from dataclasses import replace

import pytest
from records import gpu_anchors, gpu_cells, gpu_run

from perfci.explain import CaseTable, explain
from perfci.history.model import Measurement, Metric, Status
from perfci.history.summary import cell, run_summary
from perfci.timers import NOT_IN_L2

_ROPE = {"kernel": "rope", "case": "large", "bytes_moved": 8e6, "flops": 2e9}


def _table(*measurements: Measurement) -> CaseTable:
    recorded = gpu_run(*measurements, *gpu_anchors())
    cells = [cell(recorded.run_id, each) for each in recorded.measurements]
    (table,) = explain(run_summary(recorded), "rope", cells, {}).cases
    return table


def _errors(own: float, library: float) -> tuple[Metric, ...]:
    values = {"max_abs_error": own, "yardstick_max_abs_error": library}
    return tuple(Metric(name=name, value=value, unit="") for name, value in values.items())


@pytest.mark.parametrize(
    ("own", "library", "ratio"), [(2e-4, 1e-4, 2.0), (0.0, 1e-4, 0.0), (1e-4, 0.0, None)]
)
def test_an_error_is_told_in_units_of_the_librarys(
    own: float, library: float, ratio: float | None
) -> None:
    cells = gpu_cells(5e4, 4e4, 6e4, variant="tiled", **_ROPE)
    table = _table(*(replace(each, metrics=_errors(own, library)) for each in cells))
    assert table.variants[0].error_ratio == ratio


def test_data_stays_in_the_l2_where_it_does_for_one_variant() -> None:
    """A variant may need more memory than the case's own, which the timer counts as well."""
    one = gpu_cells(5e4, 4e4, 6e4, variant="tiled", **_ROPE)
    other = gpu_cells(5e4, 4e4, 6e4, variant="other", message=NOT_IN_L2, **_ROPE)
    assert [_table(*each).in_l2 for each in (one, other, (*other, *one))] == [True, False, True]


def test_a_variant_that_is_skipped_says_why_it_launches_nothing() -> None:
    skipped = [
        replace(each, status=Status.SKIPPED, passes=(), message="rank is at most 64")
        for each in gpu_cells(5e4, 4e4, 6e4, variant="small", **_ROPE)
    ]
    (variant,) = _table(*skipped).variants
    assert variant.launches_lack == "rank is at most 64"
