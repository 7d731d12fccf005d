"""Figures beside a row's latency, each in its own unit."""

import pytest

from perfci.dashboard.views.run import _metric_text
from perfci.history.model import Metric


@pytest.mark.parametrize(
    ("name", "value", "unit", "text"),
    [
        ("compile_s", 1.7982878684997559, "s", "1.8 s"),
        ("bytes_moved", 864 * 1024.0, "B", "864 KiB"),
        ("max_abs_error", 2.34e-4, "", "2.3e-04"),
        ("flops", 18_874_368.0, "", "18,874,368"),
        ("score", 0.25, "points", "0.25 points"),
        ("setup", 12_345.0, "ns", "12.3 µs"),
    ],
)
def test_a_metric_is_written_in_its_unit(name: str, value: float, unit: str, text: str) -> None:
    assert _metric_text(Metric(name=name, value=value, unit=unit)) == text
