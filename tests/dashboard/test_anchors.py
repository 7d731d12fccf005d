"""Pages tell the machine from the code: its anchors stand apart and are never a red cell."""

from typing import Any

import pytest

from perfci.history.model import Measurement


def _anchor(make: Any, latency_ns: float = 1e6) -> Measurement:
    return make.cell("torch_add", kernel="perfci_copy", case="memory", latency_ns=latency_ns)


def _headings(page: Any) -> list[Any]:
    return [node["children"] for kind in ("H2", "H3") for node in page.nodes(kind)]


@pytest.fixture
def moved(ask: Any, make: Any) -> Any:
    """Two commits with the same code on a machine that copies half as fast at the second."""
    before = make.run(0, [make.cell(), _anchor(make)])
    return ask([before, make.run(1, [make.cell(), _anchor(make, 2e6)])])


def test_a_machine_that_moved_is_said_and_is_no_regression(moved: Any) -> None:
    page = moved("/")
    assert "The machine itself moved: perfci_copy/memory cpu/1 +100 %." in page.text
    assert "No regression" in page.text
    assert "regression" not in {
        word for node in page.nodes() for word in (node.get("className") or "").split()
    }


def test_anchors_come_last_under_their_own_heading(moved: Any) -> None:
    page = moved("/")
    assert _headings(page)[-1] == "This machine: anchors"
    labels = [node.get("aria-label") for node in page.nodes("Div")]
    assert labels.count("Anchors of bench") == 1
    assert "1.02 MB/s" in page.text
    assert any("/kernel/perfci_copy" in href for href in page.hrefs)


def test_a_machine_that_did_not_move_is_not_said_to_have(ask: Any, make: Any) -> None:
    cells = [make.cell(), _anchor(make)]
    page = ask([make.run(0, cells), make.run(1, cells)])("/")
    assert "This machine: anchors" in page.text
    assert "moved" not in page.text


def test_a_run_without_anchors_has_no_section(ask: Any, make: Any) -> None:
    ask_page = ask([make.run(0)])
    assert "anchors" not in ask_page("/").text
    assert "anchors" not in ask_page(f"/run/{make.run(0).run_id}").text


def test_anchors_are_not_counted(ask: Any, make: Any) -> None:
    run = make.run(0, [make.cell(), _anchor(make)])
    page = ask([run])
    assert "1 passed" in page("/").text
    assert "1 passed" in page("/runs").text
    assert "1 of 1 row" in page(f"/run/{run.run_id}").text


def test_a_run_lists_anchors_apart_and_measures_them_again_without_a_name(
    ask: Any, make: Any
) -> None:
    run = make.run(0, [make.cell(), _anchor(make)])
    page = ask([run])(f"/run/{run.run_id}", "?row=2")
    tables = {node.get("aria-label") for node in page.nodes("Div")}
    assert {"Rows of the run", "Anchors of the run"} <= tables
    assert f"git switch --detach {run.commit.sha} && perfci run" in page.text.splitlines()


def test_the_machine_has_a_line_of_its_own(moved: Any) -> None:
    page = moved("/kernel/perfci_copy")
    assert "memory" in page.text
    assert "1.00 ms" in page.text
