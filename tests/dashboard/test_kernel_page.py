"""A kernel's page over real stores, as the browser asks for it."""

from dataclasses import replace

import pytest

from perfci.dashboard.queries import MOST_COMMITS
from perfci.history.model import Status


def test_a_kernel_with_uncommitted_trees_alone_shows_their_figures_apart(ask, make) -> None:
    failed = make.cell("bad", status=Status.TIMEOUT, message="no answer", error=None)
    runs = [
        make.run(0, [make.cell(), failed], dirty="1" * 8),
        make.run(1, [make.cell(latency_ns=2_000.0)], dirty="2" * 8),
    ]
    page = ask(runs)("/kernel/scale")
    assert "Nothing is on main’s line yet." in page.text
    assert "perfci run --kernel scale" in page.text
    assert "10.0 µs" in page.text
    assert "2.00 µs" in page.text
    assert "timeout" in page.text
    assert {f"/run/{run.run_id}" for run in runs} <= set(page.hrefs)
    assert list(page.nodes("Graph")) == []


def test_commits_of_other_branches_are_shown_beside_the_line_not_on_it(ask, make) -> None:
    topic = make.run(2, [make.cell(latency_ns=1_000.0)], branch="topic")
    page = ask([make.run(0), make.run(1), topic])("/kernel/scale")
    line, _, beside = page.text.partition("Runs beside this line")
    assert "1.00 µs" not in line
    assert "1.00 µs" in beside


@pytest.mark.parametrize("trigger", ["gate", "bisect"])
def test_a_commit_that_only_a_gate_or_bisection_measured_is_not_said_to_be_off_the_branch(
    ask, make, trigger: str
) -> None:
    judged = replace(make.run(2, [make.cell(latency_ns=1_000.0)]), trigger=trigger, pair="p")
    page = ask([make.run(0), make.run(1), judged])("/kernel/scale")
    line, _, beside = page.text.partition("Runs beside this line")
    assert "1.00 µs" not in line
    assert "1.00 µs" in beside
    said = "Of commits that the branch’s first parents don’t reach, or that only gates and "
    assert f"{said}bisections have measured." in beside


def test_only_testbeds_that_have_the_kernel_are_offered(ask, make) -> None:
    runs = [make.run(0, testbed="a"), make.run(0, testbed="b")]
    runs.append(make.run(0, [make.cell(kernel="other")], testbed="c"))
    page = ask(runs)
    hrefs = page("/kernel/scale").hrefs
    offered = {name for name in "abc" if any(f"testbed={name}&" in each for each in hrefs)}
    assert offered == {"a", "b"}
    assert page("/kernel/scale", "?testbed=c").text.startswith("Not found")


def test_a_figure_shows_the_variants_that_its_address_names(ask, make) -> None:
    page = ask([make.run(0, [make.cell(name) for name in "abc"])])
    drawn = page("/kernel/scale", "?variant=a&variant=c&variant=nope")
    (graph,) = drawn.nodes("Graph")
    names = {each["name"] for each in graph["figure"]["data"]}
    assert {"a", "c"} <= names
    assert "b" not in names
    assert "2 of 3 drawn" in drawn.text
    added = next(each for each in drawn.hrefs if "variant=b" in each)
    (graph,) = page("/kernel/scale", f"?{added.partition('?')[2]}").nodes("Graph")
    assert {"a", "b", "c"} <= {each["name"] for each in graph["figure"]["data"]}


def test_of_many_variants_few_are_drawn_and_all_are_listed(ask, make) -> None:
    cells = [make.cell(f"v{index}", latency_ns=1e3 * (index + 1)) for index in range(12)]
    page = ask([make.run(0, cells)])("/kernel/scale")
    (graph,) = page.nodes("Graph")
    names = {each["name"] for each in graph["figure"]["data"]}
    assert "v0" in names
    assert "v11" not in names
    assert "7 of 12 drawn" in page.text
    assert "12.0 µs" in page.text


def test_a_change_of_the_workload_and_of_the_environment_are_listed(ask, make) -> None:
    changed = replace(make.cell(), workload_digest="new")
    driver = replace(make.run(1), environment=make.environment(driver="580"))
    page = ask([make.run(0), driver, make.run(2, [changed])])("/kernel/scale")
    assert "bench: driver none → 580" in page.text
    assert "bench: case or reference changed" in page.text


def test_a_kernels_page_has_the_figures_as_a_table_with_links(ask, make) -> None:
    failed = make.cell(status=Status.TIMEOUT, message="no answer", error=None)
    page = ask([make.run(0), make.run(1, [failed]), make.run(2, [make.cell("other")])])(
        "/kernel/scale"
    )
    assert "10.0 µs" in page.text
    assert "timeout" in page.text
    assert "missing" in page.text
    assert f"/run/{make.run(1).run_id}" in page.hrefs
    assert [node["id"] for node in page.nodes("Graph")] == ["history-figure"]


def test_a_kernels_state_is_in_its_links(ask, make) -> None:
    cells = [make.cell(), make.cell(case="small"), make.cell(timer="cuda_hot")]
    page = ask([make.run(0, cells), make.run(0, cells, testbed="other")])
    state = "?testbed=bench&case=large&timer=cpu%2F1&scale=log"
    hrefs = page("/kernel/scale", state).hrefs
    rest = "&branch=main"
    assert f"/kernel/scale?testbed=bench&case=small&timer=cpu%2F1{rest}&scale=log" in hrefs
    assert f"/kernel/scale?testbed=bench&case=large&timer=cuda_hot%2F1{rest}&scale=log" in hrefs
    assert f"/kernel/scale?testbed=bench&case=large&timer=cpu%2F1{rest}" in hrefs
    assert f"/kernel/scale?testbed=other&case=large{rest}&scale=log" in hrefs
    for href in hrefs:
        path, _, search = href.partition("?")
        assert page(path, f"?{search}").classes("page-heading")


def test_all_testbeds_in_one_figure(ask, make) -> None:
    page = ask([make.run(0, testbed="a"), make.run(0, testbed="b")])(
        "/kernel/scale", "?testbed=all"
    )
    (graph,) = page.nodes("Graph")
    assert {"plain · a", "plain · b"} <= {each.get("name") for each in graph["figure"]["data"]}


def test_a_branchs_line_holds_its_commits_alone(ask, make) -> None:
    runs = [make.run(0), make.run(1), make.run(2, [make.cell(latency_ns=5e3)], branch="topic")]
    page = ask(runs)
    (graph,) = page("/kernel/scale").nodes("Graph")
    assert len(graph["figure"]["layout"]["xaxis"]["categoryarray"]) == 2
    (graph,) = page("/kernel/scale", "?branch=topic").nodes("Graph")
    assert len(graph["figure"]["layout"]["xaxis"]["categoryarray"]) == 1


def test_a_long_branch_is_shown_from_its_newest_end(ask, make) -> None:
    page = ask([make.run(index) for index in range(MOST_COMMITS + 5)])
    shown = page("/kernel/scale")
    (graph,) = shown.nodes("Graph")
    drawn = graph["figure"]["layout"]["xaxis"]["categoryarray"]
    assert len(drawn) == MOST_COMMITS
    assert drawn[-1] == make.commit(MOST_COMMITS + 4).sha
    assert f"Of {MOST_COMMITS + 5} commits" in shown.text
    more = next(href for href in shown.hrefs if "commits=all" in href)
    everything = page("/kernel/scale", f"?{more.partition('?')[2]}")
    (graph,) = everything.nodes("Graph")
    assert len(graph["figure"]["layout"]["xaxis"]["categoryarray"]) == MOST_COMMITS + 5
    assert "Show all" not in everything.text
