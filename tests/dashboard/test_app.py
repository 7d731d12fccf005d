"""The pages over real stores, as the browser asks for them."""

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

from perfci.dashboard.app import create_app, serve
from perfci.history.model import Device, Measurement, Pass, Status

EVIL = "<img src=x onerror=alert(1)>&\"'`$(reboot)`"


@pytest.fixture
def statements() -> Iterator[list[str]]:
    """The SQL statements that are executed meanwhile."""
    seen: list[str] = []

    def note(*args: object) -> None:
        seen.append(str(args[2]))

    event.listen(Engine, "before_cursor_execute", note)
    yield seen
    event.remove(Engine, "before_cursor_execute", note)


@pytest.mark.parametrize("path", ["/", "/runs", "/kernel/scale", "/run/abc"])
def test_an_empty_store_names_the_command_that_fills_it(ask, path) -> None:
    page = ask([])(path)
    assert "Nothing measured yet" in page.text
    assert "perfci run" in page.text


@pytest.mark.parametrize(
    ("path", "search"),
    [
        ("/nope", ""),
        ("/kernel/nope", ""),
        ("/kernel/", ""),
        ("/kernel/scale/deeper", ""),
        ("/kernel/scale", "?case=nope"),
        ("/kernel/scale", "?timer=cuda_hot/1"),
        ("/kernel/scale", "?testbed=nope"),
        ("/kernel/scale", "?branch=nope"),
        ("/run/nope", ""),
        ("/run/", ""),
        ("/run/bench", ""),
        ("/", "?testbed=nope"),
        ("/kernel/%3Cscript%3E", "?case=" + "x" * 20_000),
        ("/run/" + "y" * 20_000, ""),
    ],
)
def test_what_is_not_there_is_said_plainly(ask, make, path, search) -> None:
    page = ask([make.run(0), make.run(1)])(path, search)
    assert page.text.startswith("Not found\n404: ")
    assert len(page.text) < 2_000


def test_odd_parameters_do_no_harm(ask, make) -> None:
    page = ask([make.run(0)])
    for search in (
        "?case=large&case=large",
        "?kernel=scale&kernel=scale",
        "?x=1",
        "?%ff=%ff",
        "?=",
    ):
        assert page("/kernel/scale", search).classes("page-heading")
    assert page("/runs", "?page=999").text.count("only 1 run.") == 1
    assert page("/runs", "?page=-1").classes("page-heading")
    assert "has no row 99" in page(f"/run/{make.run(0).run_id}", "?row=99").text


def test_a_broken_store_is_said_plainly(tmp_path: Path, ask, make) -> None:
    page = ask([make.run(0)])
    (tmp_path / "history.db").write_bytes(b"no database" * 1000)
    text = page("/").text
    assert text.startswith("The store cannot be read")
    assert "Traceback" not in text


def test_a_store_that_has_gone_is_said_and_not_made_anew(tmp_path: Path, ask, make) -> None:
    page = ask([make.run(0)])
    for each in tmp_path.glob("history.db*"):
        each.unlink()
    assert f"{tmp_path}/history.db: no such file" in page("/").text
    assert not (tmp_path / "history.db").exists()


def test_one_run_has_no_change(ask, make) -> None:
    page = ask([make.run(0)])("/")
    assert "no earlier commit" in page.text
    assert "10.0 µs" in page.text
    assert page.classes("verdict") == []


def test_the_overview_tells_slower_from_equal_from_unknown(ask, make) -> None:
    before = [make.cell("slow"), make.cell("same"), make.cell("gone"), make.cell("few")]
    after = [
        make.cell("slow", latency_ns=13_000.0),
        make.cell("same"),
        make.cell("few", passes=1),
        make.cell("bad", status=Status.WRONG_VALUES, message="off", error=None),
        make.cell("first"),
    ]
    page = ask([make.run(0, before), make.run(1, after)])("/")
    red = page.classes("regression")
    assert all("regression" in str(node) for node in red)
    assert "+30.0 %" in str(red)
    assert "inconclusive" in str(page.classes("neutral"))
    assert "no earlier figure" in page.text
    assert [node["className"] for node in page.classes("status")] == ["status failed"] * 2
    assert "✕ 0 of 1" in page.text
    for node in page.classes("measured"):
        assert "improvement" in str(node) or "unchanged" in str(node)


def test_pointer_text_bounds_what_nobody_could_have_seen(ask, make) -> None:
    wild = [replace(each, samples_ns=(10.0 ** (4 + 3 * each.index),) * 5) for each in _passes(make)]
    before = [make.cell("calm", passes=2), replace(make.cell("wild"), passes=tuple(wild))]
    page = ask([make.run(0, before), make.run(1, before)])("/")
    titles = [title for node in page.nodes() if (title := node.get("title"))]
    visible = [each.partition("smallest visible change ")[2] for each in titles]
    said = {each.partition("\n")[0] for each in visible if each}
    assert "more than ten times" in said
    assert all(len(each) < 20 for each in said)


def test_the_overview_says_what_its_latency_is_and_what_its_change(ask, make) -> None:
    runs = [make.run(index, testbed=testbed) for index in (0, 1) for testbed in ("once", "twice")]
    overview = ask([*runs, make.run(1, testbed="twice", attempt=2)])
    pages = [overview("/", f"?testbed={testbed}") for testbed in ("once", "twice")]
    for page in pages:
        (key,) = page.classes("key")
        assert "Latency of the newest run that has the cell, a trimmed mean over its" in str(key)
        assert "from five on the highest and the lowest fifth are cut" in str(key)
        assert "Changes are of all runs at the commit" in str(key)
        assert "edian" not in page.text
    said = "latency of the newest run, change of all runs at this commit"
    titles = [
        [said in node["title"] for node in page.nodes("Td") if node.get("title")] for page in pages
    ]
    assert not any(titles[0])
    assert any(titles[1])


def _passes(make) -> tuple[Pass, ...]:
    return make.cell(passes=2).passes


def test_nothing_is_coloured_but_regressions_and_measured_cells(ask, make) -> None:
    before = [make.cell("gone"), make.cell("bad")]
    after = [make.cell("bad", status=Status.WRONG_VALUES, message="off", error=None)]
    page = ask([make.run(0, before), make.run(1, after)])("/")
    assert page.classes("regression") == []
    assert page.classes("measured") == []
    assert "missing" in page.text
    assert "wrong values" in page.text


def test_testbeds_are_stacked_and_can_be_chosen(ask, make) -> None:
    page = ask([make.run(0, testbed="a"), make.run(0, testbed="b")])
    assert len(page("/").classes("testbed")) == 2
    assert "/?testbed=a" in page("/").hrefs
    assert len(page("/", "?testbed=a").classes("testbed")) == 1


def test_commits_between_that_were_not_measured_are_counted(ask, make) -> None:
    assert "(3 commits not measured between)" in ask([make.run(0), make.run(4)])("/").text


def test_a_dirty_tree_is_listed_beside_the_line(ask, make) -> None:
    dirty = make.run(1, [make.cell(latency_ns=1_000.0)], dirty="d" * 8, attempt=7)
    page = ask([make.run(0), make.run(1), dirty])
    assert "1.00 µs" not in page("/").text
    assert f"/run/{dirty.run_id}" in page("/").hrefs
    kernel = page("/kernel/scale")
    line, _, apart = kernel.text.partition("Uncommitted trees")
    assert "1.00 µs" not in line
    assert "1.00 µs" in apart
    assert "uncommitted changes" in apart
    assert f"/run/{dirty.run_id}" in kernel.hrefs
    (graph,) = kernel.nodes("Graph")
    assert all(dirty.run_id not in str(each) for each in graph["figure"]["data"])


def test_the_overview_shows_one_timer_and_says_where_the_others_see_regressions(ask, make) -> None:
    def cells(host_ns: float) -> list[Measurement]:
        return [make.cell(timer="cold"), make.cell(timer="host", latency_ns=host_ns)]

    page = ask([make.run(0, cells(40_000.0)), make.run(1, cells(80_000.0))])
    first = page("/")
    assert "10.0 µs" in first.text
    assert "80.0 µs" not in first.text
    assert "host/1 ▲ 1" in first.text
    assert "+100 %" in first.text
    other = page("/", "?timer=host%2F1")
    assert "80.0 µs" in other.text
    assert "10.0 µs" not in other.text
    assert page("/", "?timer=nope").text.startswith("Not found")


def test_testbeds_with_a_gpu_come_first_and_keep_their_own_timer(ask, make) -> None:
    cpu = make.run(0, [make.cell(timer="cpu")], testbed="a")
    gpu = make.run(0, [make.cell(timer="cold"), make.cell(timer="hot")], testbed="z")
    environment = replace(gpu.environment, device=Device(kind="cuda", model="Some GPU"))
    page = ask([cpu, replace(gpu, environment=environment)])("/", "?timer=hot%2F1")
    assert page.text.index("Some GPU") < page.text.index("Some CPU")
    assert "/kernel/scale?testbed=a&timer=cpu%2F1" in page.hrefs
    assert "/kernel/scale?testbed=z&timer=hot%2F1" in page.hrefs


def test_speed_ups_bars_and_trends_are_shown_for_passed_cells(ask, make) -> None:
    wrong = make.cell("wrong", status=Status.WRONG_VALUES, message="off", error=None)
    cells = [make.cell("fast", latency_ns=2_500.0), make.cell("torch_eager"), wrong]
    page = ask([make.run(index, cells) for index in range(3)])("/")
    assert page.text.count("4.0× as fast as eager") == page.text.count("as fast as eager") == 1
    assert [node["style"]["width"] for node in page.classes("bar-fill")] == ["25.0%", "100.0%"]
    images = list(page.nodes("Img"))
    assert [node["alt"] for node in images] == [
        "last 3 commits: 2.50 µs to 2.50 µs",
        "last 3 commits: 10.0 µs to 10.0 µs",
    ]
    assert all(node["src"].startswith("data:image/svg+xml,") for node in images)


def test_the_worst_error_says_which_case_it_is(ask, make) -> None:
    cells = [make.cell(error=9e-5), make.cell(case="odd", timer=None, error=9e-2)]
    page = ask([make.run(0, cells)])("/")
    assert "1,000× yardstick" in page.text
    assert "odd" in page.text


def test_a_latency_that_passes_lie_far_from_is_marked_on_every_page(ask, make) -> None:
    cell = make.cell()
    slow = [
        replace(each, samples_ns=tuple(100 * sample for sample in each.samples_ns))
        for each in cell.passes[-2:]
    ]
    torn = replace(cell, passes=(*cell.passes[:-2], *slow))
    dirty = make.run(0, [torn], dirty="d1")
    page = ask([make.run(0, [torn, make.cell("calm")]), dirty])
    for path in ("/", f"/run/{dirty.run_id}", "/kernel/scale"):
        assert "! 31.6 µs" in page(path).text
        titles = [node["title"] for node in page(path).nodes("Td") if node.get("title")]
        assert any(
            "6 passes: 10.0 µs to 1.00 ms, 6 far from the latency" in each for each in titles
        )
    assert "! 10.0 µs" not in page("/").text


def test_text_of_the_store_is_text(ask, make) -> None:
    cells = [make.cell(), make.cell("b", status=Status.TIMEOUT, message=EVIL, error=None)]
    environment = replace(make.environment(), torch=EVIL, host=EVIL)
    run = replace(make.run(0, cells, subject=EVIL, branch=EVIL), environment=environment)
    page = ask([run], repository_url="https://example.org/a/b")
    for shown in (
        page("/"),
        page("/kernel/scale"),
        page(f"/run/{run.run_id}", "?row=1"),
        page(f"/run/{run.run_id}", "?row=2"),
        page("/runs"),
    ):
        assert EVIL in shown.text
        kinds = {node["type"] for node in _all_nodes(shown.tree)}
        assert kinds.isdisjoint({"Markdown", "DangerouslySetInnerHTML", "Iframe", "Script"})
        assert all(href.startswith(("/", "https://example.org/")) for href in shown.hrefs)


def _all_nodes(tree: object) -> Iterator[dict[str, str]]:
    if isinstance(tree, list):
        for each in tree:
            yield from _all_nodes(each)
    elif isinstance(tree, dict):
        yield tree
        yield from _all_nodes(tree["props"].get("children"))


@pytest.mark.parametrize("address", ["javascript:alert(1)", "ftp://example.org", None])
def test_commits_are_linked_to_the_web_only(ask, make, address) -> None:
    page = ask([make.run(0)], repository_url=address)("/")
    assert all(href.startswith("/") for href in page.hrefs)


def test_commits_are_linked_where_the_repository_is_known(ask, make) -> None:
    page = ask([make.run(0)], repository_url="https://example.org/a/b")("/")
    assert f"https://example.org/a/b/commit/{make.commit(0).sha}" in page.hrefs


def test_titles_say_which_page_it_is(ask, make) -> None:
    page = ask([make.run(0)])
    assert page("/").title == "Newest figures · perfci"
    assert page("/nope").title == "Not found · perfci"


def test_statements_do_not_grow_with_the_store(store_with, ask, make, statements) -> None:
    few = [make.run(index) for index in range(2)]
    page = ask(few)
    counts = {}
    for path in ("/", "/kernel/scale", f"/run/{few[0].run_id}", "/runs"):
        page(path)
        statements.clear()
        page(path)
        counts[path] = len(statements)
    store_with([make.run(index) for index in range(2, 60)])
    for path, count in counts.items():
        statements.clear()
        page(path)
        assert len(statements) == count, path
        assert count <= 20, path


def test_two_apps_do_not_share_a_store(tmp_path: Path) -> None:
    first = create_app(f"sqlite:///{tmp_path / 'a.db'}")
    second = create_app(f"sqlite:///{tmp_path / 'b.db'}")
    assert first.server.config["PERFCI_SITE"] != second.server.config["PERFCI_SITE"]


def test_an_address_in_use_is_an_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            serve(f"sqlite:///{tmp_path / 'a.db'}", "127.0.0.1", port)


def test_an_app_can_be_made_in_any_folder_after_another(
    ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Nothing measured yet" in ask([])("/").text
    monkeypatch.chdir(tmp_path)
    assert "Nothing measured yet" in ask([])("/").text
