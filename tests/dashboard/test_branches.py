from dataclasses import replace

from perfci.dashboard.branches import choose_branch, order_branch, pair_newest, runs_at, take_newest
from perfci.history.model import Run, RunSummary
from perfci.history.summary import run_summary


def summaries(*runs: Run) -> list[RunSummary]:
    """Newest start first, as a store returns them."""
    return sorted((run_summary(run) for run in runs), key=lambda run: run.started_at, reverse=True)


def test_order_is_the_graphs_though_the_clock_runs_backwards(make) -> None:
    first, second = make.run(1), make.run(2)
    second = replace(second, started_at=first.started_at.replace(year=2020))
    assert [commit.position for commit in order_branch(summaries(first, second), "main")] == [1, 2]
    pair = pair_newest(summaries(first, second))
    assert [run.commit.position for run in pair.runs] == [2]
    assert [run.commit.position for run in pair.previous] == [1]


def test_a_dirty_tree_is_newer_but_not_on_the_line(make) -> None:
    pair = pair_newest(summaries(make.run(0), make.run(1), make.run(1, dirty="d" * 8, attempt=9)))
    assert [run.run_id for run in pair.runs] == [make.run(1).run_id]
    assert pair.newer is not None
    assert pair.newer.commit.dirty


def test_dirty_trees_alone_stand_alone(make) -> None:
    pair = pair_newest(summaries(make.run(0, dirty="1" * 8), make.run(1, dirty="2" * 8)))
    assert [run.commit.position for run in pair.runs] == [1]
    assert pair.previous == ()


def test_all_attempts_at_a_commit_count(make) -> None:
    pair = pair_newest(summaries(make.run(0), make.run(1), make.run(1, attempt=2)))
    assert [run.attempt for run in pair.runs] == [2, 1]


def test_one_commit_has_nothing_before_it(make) -> None:
    assert pair_newest(summaries(make.run(0))).previous == ()


def test_the_main_branch_is_shown_unasked_else_the_last_measured(make) -> None:
    main, other = make.run(0), make.run(1, branch="topic")
    assert choose_branch(summaries(main, other)) == "main"
    assert choose_branch(summaries(other)) == "topic"
    assert choose_branch(summaries(make.run(0, branch=None))) == ""


def test_a_commit_without_a_branch_belongs_to_every_one(make) -> None:
    runs = summaries(make.run(0, branch=None), make.run(1), make.run(2, branch="topic"))
    assert [commit.position for commit in order_branch(runs, "main")] == [0, 1]


def test_the_newest_end_of_a_line_is_bounded_by_commits_and_cells(make) -> None:
    runs = summaries(
        *(make.run(index, [make.cell(f"v{n}") for n in range(10)]) for index in range(9))
    )
    line = order_branch(runs, "main")

    def take(most: int, most_cells: int) -> list[int | None]:
        taken = take_newest(line, runs, most=most, most_cells=most_cells)
        return [commit.position for commit in taken]

    assert take(100, 1_000) == list(range(9))
    assert take(3, 1_000) == [6, 7, 8]
    assert take(100, 40) == [5, 6, 7, 8]
    assert take(100, 1) == [7, 8]
    assert list(take_newest([], runs, most=3, most_cells=10)) == []


def test_runs_at_commits_are_those_of_clean_trees(make) -> None:
    runs = summaries(make.run(0), make.run(1), make.run(1, dirty="d" * 8, attempt=9))
    assert [run.run_id for run in runs_at(runs, [make.commit(1)])] == [make.run(1).run_id]
