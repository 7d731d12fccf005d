from collections.abc import Sequence
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from perfci.dashboard import sparkline
from perfci.dashboard.branches import order_branch
from perfci.dashboard.lines import Line, trace
from perfci.history.model import Run, Status
from perfci.history.summary import cell, run_summary


def line_of(runs: Sequence[Run]) -> Line:
    summaries = [run_summary(run) for run in reversed(runs)]
    cells = [cell(run.run_id, each) for run in runs for each in run.measurements]
    return trace(summaries, cells, order_branch(summaries, "main")).lines[0]


def heights(line: Line) -> list[float]:
    drawn = unquote(sparkline.draw(line).partition(",")[2])
    path = next(each for each in ET.fromstring(drawn) if each.tag.endswith("path"))
    points = path.attrib["d"].replace("M", "L").split("L")[1:]
    return [float(point.split()[1]) for point in points]


def test_slower_is_higher_and_the_newest_is_last(make) -> None:
    runs = [make.run(index, [make.cell(latency_ns=1e4 + 5e3 * index)]) for index in range(3)]
    first, second, third = heights(line_of(runs))
    assert first > second > third


def test_noise_does_not_fill_the_height(make) -> None:
    runs = [make.run(index, [make.cell(latency_ns=1e4 + index)]) for index in range(3)]
    found = heights(line_of(runs))
    assert max(found) - min(found) < 1.0


def test_what_failed_is_a_gap(make) -> None:
    failed = make.cell(status=Status.TIMEOUT, message="no answer", error=None)
    runs = [make.run(0), make.run(1), make.run(2, [failed]), make.run(3)]
    assert unquote(sparkline.draw(line_of(runs))).count("M") == 2


def test_one_latency_is_no_line(make) -> None:
    assert sparkline.draw(line_of([make.run(0)])) == ""


def test_a_latency_of_nothing_is_drawn(make) -> None:
    runs = [make.run(index, [make.cell(latency_ns=0.0)]) for index in range(2)]
    assert len(heights(line_of(runs))) == 2


def test_it_is_said_in_words(make) -> None:
    runs = [make.run(index, [make.cell(latency_ns=1e4 + 5e3 * index)]) for index in range(3)]
    assert sparkline.describe(line_of(runs)) == "last 3 commits: 10.0 µs to 20.0 µs"
