"""A study's page over real stores, as the browser asks for it, and what takes noise from it."""

from dataclasses import replace

from records import beside_others


def _study(make, *, testbed: str = "bench", number: int = 2) -> list:
    runs = [make.run(number, testbed=testbed, attempt=side) for side in (1, 2)]
    return [replace(run, trigger="noise", pair=f"p{testbed}{number}") for run in runs]


def test_a_testbeds_noise_is_shown_cell_by_cell(ask, make) -> None:
    cells = [make.cell("plain", passes=4), make.cell("other", passes=4)]
    first, second = (replace(run, measurements=tuple(cells)) for run in _study(make))
    page = ask([make.run(1), first, second])("/noise")
    assert "Noise of bench" in page.text
    assert {f"/run/{first.run_id}", f"/run/{second.run_id}"} <= set(page.hrefs)
    assert "other" in page.text
    assert "Passes4Runs" in page.text.replace(" ", "").replace("\n", "")
    (graph,) = page.nodes("Graph")
    assert [len(trace["x"]) for trace in graph["figure"]["data"]] == [2, 2]


def test_the_noise_of_each_kernel_is_drawn_to_one_scale(ask, make) -> None:
    cells = [make.cell("plain", passes=4), make.cell("plain", passes=6, kernel="other")]
    runs = [replace(run, measurements=tuple(cells)) for run in _study(make)]
    page = ask(runs)("/noise")
    assert "Passes6Runs" in page.text.replace(" ", "").replace("\n", "")
    first, second = (graph["figure"] for graph in page.nodes("Graph"))
    assert [len(trace["x"]) for trace in (*first["data"], *second["data"])] == [1, 1, 1, 1]
    assert first["layout"]["xaxis"]["range"] == second["layout"]["xaxis"]["range"]
    assert first["layout"]["margin"] == second["layout"]["margin"]
    assert (first["layout"]["showlegend"], second["layout"]["showlegend"]) == (False, False)


def test_a_cell_of_a_study_has_its_case_in_its_name_where_a_kernel_has_several(ask, make) -> None:
    cells = [
        make.cell("plain", passes=6),
        make.cell("plain", passes=6, kernel="other"),
        make.cell("plain", passes=6, kernel="other", case="a_case_of_many_words"),
    ]
    runs = [replace(run, measurements=tuple(cells)) for run in _study(make)]
    page = ask(runs)("/noise")
    names = [graph["figure"]["layout"]["yaxis"]["ticktext"] for graph in page.nodes("Graph")]
    assert names == [["plain cpu"], ["plain/large cpu", "plain/a_c…ny_words cpu"]]
    assert max(len(name) for own in names for name in own) <= 22
    assert "plain/a_case_of_many_words cpu/1" in str(list(page.nodes("Graph")))


def test_a_study_says_of_itself_what_the_command_says(ask, make) -> None:
    busy, few = make.cell("plain", passes=12), make.cell("other", passes=3)
    runs = [replace(run, measurements=(beside_others(busy, 0.4), few)) for run in _study(make)]
    text = ask(runs)("/noise").text
    said = "A busy machine: others used 40 % of the cores while 2 of 4 latencies were measured."
    assert said in text
    assert (
        "Too few passes of 1 of 2 cells: 3 know a spread to some 50 %, and what more paired passes "
        "would call no better. perfci noise takes 12 unless told otherwise."
    ) in text
    quiet = [replace(run, measurements=(busy,)) for run in _study(make, number=3)]
    text = ask(quiet)("/noise").text
    assert not any(words in text for words in ("busy machine", "Too few"))


def test_where_no_study_was_recorded_the_page_says_which_command_makes_one(ask, make) -> None:
    for runs in ([], [make.run(1)]):  # the same store
        page = ask(runs)("/noise").text
        assert ("No study of noise was recorded yet" in page, "404" in page) == (True, False)
        assert "perfci noise" in page
    assert "of the testbed “bench” was recorded" in ask([])("/noise", "?testbed=bench").text
    studied = ask(_study(make, testbed="other"))
    assert "of the testbed “bench” was recorded" in studied("/noise", "?testbed=bench").text
    assert "Noise of other" in studied("/noise").text


def test_the_noise_of_a_testbed_that_there_is_not_is_not_found(ask, make) -> None:
    for runs in ([], [make.run(1)], _study(make)):  # the same store
        assert "404: no testbed “nowhere” here" in ask(runs)("/noise", "?testbed=nowhere").text


def test_the_overview_takes_its_noise_from_the_study(ask, make) -> None:
    cells = [make.cell("plain", passes=6)]
    before = ask([make.run(number, cells) for number in (1, 2)])("/")
    after = ask([replace(run, measurements=tuple(cells)) for run in _study(make, number=3)])("/")
    assert (bool(before.classes("inconclusive")), bool(before.classes("measured"))) == (True, False)
    assert (bool(after.classes("inconclusive")), bool(after.classes("measured"))) == (False, True)
