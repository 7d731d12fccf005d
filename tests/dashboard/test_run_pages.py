"""The list of runs and a run's page over real stores, as the browser asks for them."""

from dataclasses import replace

from perfci.history.model import Status


def test_a_run_shows_every_row_and_how_to_measure_it_again(ask, make) -> None:
    cells = [
        make.cell(),
        make.cell("bad", status=Status.RUNTIME_ERROR, message="line one\nline two", error=None),
    ]
    run = make.run(0, cells)
    page = ask([run])
    assert "2 of 2 rows" in page(f"/run/{run.run_id}").text
    assert "line one\nline two" in page(f"/run/{run.run_id}").text
    chosen = page(f"/run/{run.run_id}", "?row=1")
    assert (
        f"git switch --detach {run.commit.sha} && perfci run"
        " --kernel scale --variant plain --case large" in chosen.text
    )
    assert "stabilised" in chosen.text
    assert "SM 1,980 MHz" in chosen.text
    assert "throttled: sw_power_cap" in chosen.text
    numbers = [node["children"] for node in chosen.nodes("Th") if node.get("scope") == "row"]
    assert numbers[:6] == ["1", "2", "3", "4", "5", "6"]  # as passes are counted on a terminal
    assert [node["id"] for node in chosen.nodes("Graph")] == ["samples-figure"]
    assert list(page(f"/run/{run.run_id}", "?row=2").nodes("Graph")) == []


def test_rows_of_a_run_are_filtered_and_sorted_by_the_url(ask, make) -> None:
    cells = [
        make.cell("slow", latency_ns=9e4),
        make.cell("fast", latency_ns=1e3),
        make.cell("bad", status=Status.TIMEOUT, message="late", error=None),
    ]
    run = make.run(0, cells)
    page = ask([run])

    def variants(search: str) -> list[str]:
        tables = page(f"/run/{run.run_id}", search)
        return [
            "".join(node["children"]["props"]["children"])
            for node in tables.nodes("Th")
            if node.get("scope") == "row"
        ]

    assert variants("") == ["slow", "fast", "bad"]
    assert variants("?sort=latency") == ["fast", "slow", "bad"]
    assert variants("?sort=latency&order=descending") == ["slow", "fast", "bad"]
    assert variants("?status=timeout") == ["bad"]
    assert variants("?text=LATE") == ["bad"]
    assert variants("?text=nothing") == []
    assert variants("?sort=__class__") == ["slow", "fast", "bad"]


def test_a_run_is_found_by_the_beginning_of_its_id(ask, make) -> None:
    runs = [make.run(0), make.run(1)]
    page = ask(runs)
    assert "Run at" in page(f"/run/{runs[0].run_id[:9]}").text
    assert "several runs begin" in page("/run/bench-").text


def test_runs_are_listed_newest_first_and_filtered(ask, make) -> None:
    runs = [make.run(0), make.run(1), make.run(1, testbed="other", attempt=2)]
    page = ask(runs)
    links = [href for href in page("/runs").hrefs if href.startswith("/run/")]
    assert list(dict.fromkeys(links)) == [f"/run/{run.run_id}" for run in reversed(runs)]
    assert "1 to 1 of 1 run" in page("/runs", f"?sha={runs[0].commit.sha[:8].upper()}").text
    assert "1 to 1 of 1 run" in page("/runs", "?testbed=other").text
    assert "No run matches." in page("/runs", "?sha=ffff").text


def test_a_study_of_noise_is_listed_and_in_no_history(ask, make) -> None:
    run, study = make.run(1), replace(make.run(2), run_id="study", trigger="noise")
    page = ask([run, study])
    assert {f"/run/{run.run_id}", "/run/study"} <= set(page("/runs").hrefs)
    assert "Trigger\nnoise\n" in page("/run/study").text
    for path in ("/", "/kernel/scale"):
        assert not any("study" in href for href in page(path).hrefs)
        assert any(run.run_id in href for href in page(path).hrefs)


def test_a_long_list_of_runs_is_turned_by_pages(ask, make) -> None:
    page = ask([make.run(index) for index in range(105)])
    assert "1 to 100 of 105 runs" in page("/runs").text
    assert "/runs?page=2" in page("/runs").hrefs
    assert "101 to 105 of 105 runs" in page("/runs", "?page=2").text
