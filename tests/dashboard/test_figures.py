from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
import pytest

from perfci.dashboard import figures
from perfci.dashboard.branches import order_branch
from perfci.dashboard.lines import History, trace
from perfci.history.model import Run, Status
from perfci.history.summary import cell, run_summary, summarise


def history_of(runs: Sequence[Run]) -> History:
    newest_first = sorted(runs, key=lambda run: run.started_at, reverse=True)
    summaries = [run_summary(run) for run in newest_first]
    cells = [cell(run.run_id, each) for run in newest_first for each in run.measurements]
    return trace(summaries, cells, order_branch(summaries, "main"))


def traces(figure: dict[str, Any], axis: str) -> list[dict[str, Any]]:
    return [each for each in figure["data"] if each.get("yaxis", "y") == axis]


@pytest.fixture
def history(make) -> History:
    wrong = make.cell(status=Status.WRONG_VALUES, message="off by <b>2</b>", error=None)
    return history_of(
        [
            make.run(0, subject="<img src=x onerror=alert(1)>"),
            make.run(1, [wrong]),
            make.run(2, [make.cell("other")]),
            make.run(3, [make.cell(latency_ns=12_000.0), make.cell("other")]),
        ]
    )


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_plotly_accepts_the_figures(history: History, scale: figures.Scale, make) -> None:
    go.Figure(figures.history_figure(history, scale=scale))
    passes = make.cell().passes
    go.Figure(figures.samples_figure(passes, summarise(passes).pass_means_ns))


def test_latencies_are_in_microseconds_and_what_failed_or_is_missing_is_a_gap(
    history: History,
) -> None:
    plain, other = traces(figures.history_figure(history), "y")
    assert plain["y"] == [pytest.approx(10.0), None, None, pytest.approx(12.0)]
    assert other["y"] == [None, None, pytest.approx(10.0), pytest.approx(10.0)]
    assert plain["connectgaps"] is False
    assert plain["error_y"]["array"][1] is None


def test_failures_are_marked_in_the_strip_and_missing_ones_otherwise(history: History) -> None:
    plain, other = traces(figures.history_figure(history), "y2")
    assert plain["y"] == [None, 0, 0, None]
    assert plain["marker"]["symbol"][1:3] == ["x", "line-ew-open"]
    assert "wrong values" in plain["hovertext"][1]
    assert "missing" in plain["hovertext"][2]
    assert other["y"] == [None] * 4


def test_the_latency_axis_starts_at_zero_unless_asked_otherwise(history: History) -> None:
    linear = figures.history_figure(history)["layout"]["yaxis"]
    assert linear["rangemode"] == "tozero"
    assert figures.history_figure(history, scale="log")["layout"]["yaxis"]["type"] == "log"


def test_an_error_of_zero_is_not_drawn_on_a_logarithmic_axis(make) -> None:
    exact = history_of([make.run(0, [make.cell(error=0.0)]), make.run(1)])
    assert figures.history_figure(exact)["layout"]["yaxis3"]["type"] == "linear"
    usual = history_of([make.run(0), make.run(1)])
    assert figures.history_figure(usual)["layout"]["yaxis3"]["type"] == "log"


def test_the_yardstick_is_drawn_beside_the_errors(history: History) -> None:
    *_, yardstick = traces(figures.history_figure(history), "y3")
    assert yardstick["name"] == "yardstick’s error, bench"
    assert yardstick["y"] == [9e-5, None, 9e-5, 9e-5]


def test_text_of_the_store_is_never_html(make) -> None:
    evil = "<a href='https://evil.example'>x</a>&"
    runs = [
        make.run(
            0, [make.cell(evil, status=Status.TIMEOUT, message=evil, error=None)], subject=evil
        ),
        make.run(1, [make.cell(evil)], testbed=evil, subject=evil),
    ]
    figure = figures.history_figure(history_of(runs))
    texts = [text for each in figure["data"] for text in (each["hovertext"], each.get("name", ""))]
    shown = str(texts).replace("<br>", "")
    assert "&lt;a href=" in shown
    assert "<" not in shown


def test_points_lead_to_their_runs(history: History) -> None:
    plain = traces(figures.history_figure(history), "y")[0]
    assert plain["customdata"][0].startswith("/run/bench-")


def test_commits_are_categories_in_order_and_only_some_are_labelled(make) -> None:
    figure = figures.history_figure(history_of([make.run(index) for index in range(40)]))
    axis = figure["layout"]["xaxis"]
    assert len(axis["categoryarray"]) == 40
    assert axis["categoryarray"][0] == make.commit(0).sha
    assert len(axis["tickvals"]) <= 14


def test_variants_differ_by_more_than_colour_and_testbeds_by_dash(make) -> None:
    names = [f"v{index}" for index in range(7)]
    cells = [make.cell(name) for name in names]
    runs = [make.run(0, cells, testbed=testbed) for testbed in ("a", "b")]
    drawn = traces(figures.history_figure(history_of(runs)), "y")
    assert len({each["marker"]["symbol"] for each in drawn}) == 7
    assert {each["line"]["dash"] for each in drawn} == {"solid", "dash"}
    assert drawn[0]["name"] == "v0 · a"


def test_a_change_of_the_environment_is_a_line(make) -> None:
    changed = replace(make.run(1), environment=make.environment(driver="580"))
    figure = figures.history_figure(history_of([make.run(0), changed]))
    assert [shape["x0"] for shape in figure["layout"]["shapes"]] == [make.commit(1).sha]


def test_samples_are_drawn_in_reading_order_with_each_passs_mean(make) -> None:
    passes = make.cell(passes=2).passes
    means = summarise(passes).pass_means_ns
    first, first_mean, second, second_mean = figures.samples_figure(passes, means)["data"]
    assert first["x"] == [1, 2, 3, 4, 5]
    assert second["x"] == [6, 7, 8, 9, 10]
    assert first["y"] == [each / 1e3 for each in passes[0].samples_ns]
    assert first_mean["y"] == [means[0] / 1e3] * 2
    assert second_mean["x"] == [6, 10]


def test_many_samples_are_thinned_and_the_figure_says_so(make) -> None:
    (one,) = make.cell(passes=1).passes
    big = replace(one, samples_ns=tuple(float(index + 1) for index in range(20_000)))
    figure = figures.samples_figure([big], [1.0])
    assert len(figure["data"][0]["x"]) <= figures.MOST_DRAWN_SAMPLES
    assert "every 4th" in figure["layout"]["xaxis"]["title"]["text"]
