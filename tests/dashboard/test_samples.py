from dataclasses import replace

import plotly.graph_objects as go

from perfci.dashboard import samples
from perfci.history.summary import summarise


def test_plotly_accepts_the_figure(make) -> None:
    passes = make.cell().passes
    assert go.Figure(samples.samples_figure(passes)).data


def test_samples_are_drawn_in_reading_order_with_each_passs_mean(make) -> None:
    passes = make.cell(passes=2).passes
    means = summarise(passes).pass_means_ns
    first, first_mean, second, second_mean = samples.samples_figure(passes)["data"]
    assert first["x"] == [1, 2, 3, 4, 5]
    assert second["x"] == [6, 7, 8, 9, 10]
    assert first["y"] == [each / 1e3 for each in passes[0].samples_ns]
    assert first_mean["y"] == [means[0] / 1e3] * 2
    assert second_mean["x"] == [6, 10]
    assert second["hovertext"][0].startswith("pass 2, sample 1<br>")
    assert second_mean["hovertext"].startswith("pass 2, ")


def test_a_pass_in_quarantine_is_hollow_and_has_no_mean(make) -> None:
    first, second = make.cell(passes=2).passes
    spoilt = replace(second, quarantine="another process was on the GPU")
    data = samples.samples_figure([first, spoilt])["data"]
    assert [each["mode"] for each in data] == ["markers", "lines", "markers"]
    assert [data[0]["marker"]["symbol"], data[2]["marker"]["symbol"]] == ["circle", "circle-open"]


def test_many_samples_are_thinned_and_the_figure_says_so(make) -> None:
    (one,) = make.cell(passes=1).passes
    big = replace(one, samples_ns=tuple(float(index + 1) for index in range(20_000)))
    figure = samples.samples_figure([big])
    assert len(figure["data"][0]["x"]) <= samples.MOST_DRAWN_SAMPLES
    assert "one of 4 drawn" in figure["layout"]["xaxis"]["title"]["text"]
