"""Figures beside a row's latency, each in its own unit."""

import pytest
from records import beside_others

from perfci.dashboard.origins import Origin
from perfci.dashboard.states import RunState
from perfci.dashboard.views.run import _mean, _metric_text, _others, show
from perfci.history.model import Clock, Metric, Pass, Run
from perfci.history.summary import run_summary


@pytest.mark.parametrize(
    ("name", "value", "unit", "text"),
    [
        ("compile_s", 1.7982878684997559, "s", "1.8 s"),
        ("bytes_moved", 864 * 1024.0, "B", "864 KiB"),
        ("max_abs_error", 2.34e-4, "", "2.3e-04"),
        ("flops", 18_874_368.0, "", "18,874,368"),
        ("score", 0.25, "points", "0.25 points"),
        ("others_core_share", 0.83123, "", "83 %"),
        ("setup", 12_345.0, "ns", "12.3 µs"),
    ],
)
def test_a_metric_is_written_in_its_unit(name: str, value: float, unit: str, text: str) -> None:
    assert _metric_text(Metric(name=name, value=value, unit=unit)) == text


def test_a_pass_in_quarantine_says_why_instead_of_a_mean() -> None:
    good = Pass(index=0, samples_ns=(12_345.0,), clocks=(Clock(),))
    spoilt = Pass(index=1, samples_ns=(5.0,), other_processes=1, quarantine="another was there")
    assert [_mean(each) for each in (good, spoilt)] == [
        "12.3 µs",
        "in quarantine: another was there",
    ]
    assert [_others(each) for each in (good, spoilt)] == ["not known", "1"]
    assert _others(Pass(index=2, samples_ns=(5.0,))) == "–"


def test_a_busy_machine_is_said_once_below_the_facts(make) -> None:
    run = make.run(0, [beside_others(make.cell(), 0.4), make.cell("b")])
    said = "A busy machine: others used 40 % of the cores while 1 of 2 latencies was measured."
    assert _shown(run).count(said) == 1
    assert "busy machine" not in _shown(make.run(0, [make.cell(), make.cell("b")]))


def _shown(run: Run) -> str:
    origin = Origin(run=run_summary(run))
    return str(show(run, origin, RunState(run_id=run.run_id), repository_url=None))
