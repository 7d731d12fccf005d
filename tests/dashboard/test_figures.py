from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
import pytest

from perfci.dashboard import figures
from perfci.dashboard.branches import order_branch
from perfci.dashboard.lines import MOST_DRAWN, History, choose_variants, trace
from perfci.history.model import Measurement, Run, Status
from perfci.history.summary import cell, run_summary


def history_of(runs: Sequence[Run]) -> History:
    newest_first = sorted(runs, key=lambda run: run.started_at, reverse=True)
    summaries = [run_summary(run) for run in newest_first]
    cells = [cell(run.run_id, each) for run in newest_first for each in run.measurements]
    return trace(summaries, cells, order_branch(summaries, "main"))


def traces(figure: dict[str, Any], axis: str) -> list[dict[str, Any]]:
    drawn = [each for each in figure["data"] if each.get("yaxis", "y") == axis]
    return [each for each in drawn if "fill" not in each]


def bands(figure: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in figure["data"] if "fill" in each]


def with_workload(run: Run, digest: str) -> Run:
    cells = tuple(replace(each, workload_digest=digest) for each in run.measurements)
    return replace(run, measurements=cells)


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
def test_plotly_accepts_the_figure(history: History, scale: figures.Scale) -> None:
    assert go.Figure(figures.history_figure(history, scale=scale)).data


def test_latencies_are_in_microseconds_and_what_failed_or_is_missing_is_a_gap(
    history: History,
) -> None:
    plain, other = traces(figures.history_figure(history), "y")
    assert plain["y"] == [pytest.approx(10.0), None, None, pytest.approx(12.0)]
    assert other["y"] == [pytest.approx(10.0), pytest.approx(10.0)]
    assert other["x"] == [commit.sha for commit in history.commits[2:]]
    assert plain["connectgaps"] is False
    assert plain["error_y"]["array"][1] is None


def test_failures_are_marked_in_the_strip_and_missing_ones_otherwise(history: History) -> None:
    plain, other = traces(figures.history_figure(history), "y2")
    assert plain["y"] == [None, 0, 0, None]
    assert plain["marker"]["symbol"][1:3] == ["x", "line-ew-open"]
    assert "wrong values" in plain["hovertext"][1]
    assert "missing" in plain["hovertext"][2]
    assert other["y"] == [None] * 2


def test_the_latency_axis_starts_at_zero_unless_asked_otherwise(history: History) -> None:
    linear = figures.history_figure(history)["layout"]["yaxis"]
    assert linear["rangemode"] == "tozero"
    assert figures.history_figure(history, scale="log")["layout"]["yaxis"]["type"] == "log"


def torn(cell: Measurement, *readings_ns: float) -> Measurement:
    passes = [
        replace(each, samples_ns=(reading_ns,))
        for each, reading_ns in zip(cell.passes, readings_ns, strict=True)
    ]
    return replace(cell, passes=tuple(passes))


def test_a_wild_interval_is_cut_and_the_axis_goes_by_the_latencies(make) -> None:
    wild = torn(make.cell(passes=2), 1e3, 9e4)
    calm = make.cell("calm", latency_ns=12_000.0)
    history = history_of([make.run(0, [make.cell(), calm]), make.run(1, [wild, calm])])
    figure = figures.history_figure(history)
    low_us, high_us = figure["layout"]["yaxis"]["range"]
    assert low_us == 0
    assert 12.0 < high_us < 24.0
    said = "the interval is cut at the edge of the figure"
    plain, other = traces(figure, "y")
    assert [said in each for each in plain["hovertext"]] == [False, True]
    assert not any(said in each for each in other["hovertext"])
    low, high = figures.history_figure(history, scale="log")["layout"]["yaxis"]["range"]
    assert 4.0 < 10**low < 10**high < 24.0
    without = figures.history_figure(history, variants=["calm"])
    assert "range" not in without["layout"]["yaxis"]


def test_an_interval_in_proportion_is_drawn_whole(make) -> None:
    wide = torn(make.cell(passes=3), 9e3, 1e4, 1.1e4)
    figure = figures.history_figure(history_of([make.run(0), make.run(1, [wide])]))
    assert "range" not in figure["layout"]["yaxis"]
    assert not any("cut" in each for each in traces(figure, "y")[0]["hovertext"])


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
    texts = [text for each in figure["data"] for text in (each.get("hovertext", ""), each["name"])]
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
    (shape,) = figure["layout"]["shapes"]
    (sign,) = figure["layout"]["annotations"]
    assert shape["x0"] == shape["x1"] == sign["x"] == 0.5
    assert sign["hovertext"] == "bench: driver none → 580"


def test_a_change_of_the_workload_breaks_the_line_and_is_marked(make) -> None:
    runs = [with_workload(make.run(index), "old" if index < 2 else "new") for index in range(4)]
    history = history_of(runs)
    figure = figures.history_figure(history)
    (latency,) = traces(figure, "y")
    assert [each is None for each in latency["y"]] == [False, False, True, False, False]
    error, yardstick = traces(figure, "y3")
    assert error["y"][2] is yardstick["y"][2] is None
    assert len(latency["customdata"]) == len(latency["hovertext"]) == len(latency["x"]) == 5
    (sign,) = figure["layout"]["annotations"]
    assert (sign["x"], sign["hovertext"]) == (1.5, "bench: case or reference changed")
    (band,) = bands(figure)
    assert band["y"].count(None) == 2


def test_the_band_goes_along_the_intervals_upper_ends_and_back_along_the_lower(make) -> None:
    (band,) = bands(figures.history_figure(history_of([_disturbed(make.run(n)) for n in (0, 1)])))
    first, second = make.commit(0).sha, make.commit(1).sha
    assert band["x"] == [first, second, second, first, None]
    upper, _, lower, _, end = band["y"]
    assert upper > 10.0 > lower
    assert end is None


def test_a_point_says_its_latency_its_interval_and_what_its_passes_read(make) -> None:
    figure = figures.history_figure(history_of([_disturbed(make.run(0))]))
    (latency,) = traces(figure, "y")
    (text,) = latency["hovertext"]
    assert latency["y"] == [pytest.approx(10.025, rel=1e-3)]
    assert "latency 10.0 µs, 95 % interval 9.92 µs to 10.1 µs" in text
    assert "6 passes: 10.0 µs to 40.0 µs, 1 far from the latency" in text
    (once,) = traces(figures.history_figure(history_of([make.run(0, [make.cell(passes=1)])])), "y")
    assert "interval" not in once["hovertext"][0]
    assert once["error_y"]["array"] == once["error_y"]["arrayminus"] == [0.0]


def _disturbed(run: Run) -> Run:
    """A run of whose six passes one was disturbed a little, and one a lot."""
    (row,) = run.measurements
    *good, last = row.passes
    slower = (1.01, 4.0)
    passes = [*good[:-1], good[-1], last]
    for index, factor in zip((-2, -1), slower, strict=True):
        slow = tuple(factor * each for each in passes[index].samples_ns)
        passes[index] = replace(passes[index], samples_ns=slow)
    return replace(run, measurements=(replace(row, passes=tuple(passes)),))


def test_a_testbed_that_skips_commits_has_one_unbroken_line(make) -> None:
    runs = [make.run(index, testbed="a") for index in range(4)]
    runs += [make.run(index, testbed="b") for index in (0, 3)]
    figure = figures.history_figure(history_of(runs))
    sparse = traces(figure, "y")[1]
    assert sparse["x"] == [make.commit(0).sha, make.commit(3).sha]
    assert None not in sparse["y"]


def test_what_is_left_out_changes_no_colour_of_the_others(make) -> None:
    history = history_of([make.run(0, [make.cell(f"v{index}") for index in range(12)])])
    everything = traces(figures.history_figure(history), "y")
    (alone,) = traces(figures.history_figure(history, variants=["v9"]), "y")
    assert alone["marker"] == everything[9]["marker"]
    unasked = traces(figures.history_figure(history, variants=choose_variants(history.lines)), "y")
    assert len({each["marker"]["color"] for each in unasked}) == len(unasked) == MOST_DRAWN
