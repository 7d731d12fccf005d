"""The contract of every store: a new one joins by a line in STORES."""

import dataclasses
import random
import subprocess
import sys
from datetime import timedelta

import pytest

from perfci.history.codec import write_run_file
from perfci.history.errors import NoStoreError, StoreError
from perfci.history.model import Contract, Measurement, Metric, Pass, Status
from perfci.history.stores import STORES, open_store
from perfci.history.summary import cell, run_summary

URLS = {"sqlite": lambda folder: f"sqlite:///{folder}/history.db"}


def test_every_store_is_tested_here():
    assert set(URLS) == set(STORES)


@pytest.fixture(params=sorted(URLS))
def url(request, tmp_path):
    return URLS[request.param](tmp_path)


@pytest.fixture
def store(url):
    with open_store(url) as opened:
        yield opened


def cells_of(run):
    return [cell(run.run_id, each) for each in run.measurements]


def test_an_unknown_kind_of_store_is_named():
    with pytest.raises(StoreError, match="'mongodb': unknown kind of store; known: sqlite"):
        open_store("mongodb://x")


def test_a_new_store_is_empty(store):
    assert list(store.runs()) == []
    assert list(store.cells()) == []


def test_only_a_run_makes_a_store(url, make_run):
    with open_store(url) as store:
        assert (list(store.runs()), list(store.cells())) == ([], [])
        for use in (store.run, store.remove):
            with pytest.raises(StoreError, match=f"^{url}: no run 'r1' in the store"):
                use("r1")
        with pytest.raises(NoStoreError):
            open_store(url, create=False)
        store.add(make_run())
        with open_store(url, create=False) as made:
            assert made.run("r1") == store.run("r1") == make_run()


def test_a_store_that_another_has_made_meanwhile_is_read(url, make_run):
    with open_store(url) as store, open_store(url) as other:
        assert list(store.runs()) == []
        other.add(make_run())
        assert store.run("r1") == make_run()
        assert store.add(make_run()) is False
        store.remove("r1")
        assert list(other.runs()) == []


def test_a_run_comes_back_as_it_was(store, make_run):
    run = make_run()
    assert store.add(run) is True
    assert store.run("r1") == run
    assert list(store.runs()) == [run_summary(run)]
    assert list(store.cells()) == cells_of(run)


def test_what_is_in_quarantine_comes_back_and_counts_for_no_cell(store, make_run):
    first, *others = make_run().measurements
    good = Pass(index=0, samples_ns=(1.0, 2.0), sm_mhz=1980.0, other_processes=0)
    spoilt = Pass(index=1, samples_ns=(9.0,), sm_mhz=345.0, quarantine="the SM clock was low")
    unknown = Pass(index=2, samples_ns=(3.0,))
    row = dataclasses.replace(first, passes=(good, spoilt, unknown))
    run = make_run(measurements=(row, *others))
    store.add(run)
    assert store.run("r1") == run
    latency = next(iter(store.cells())).latency
    assert (latency.sample_count, latency.pass_means_ns) == (3, (1.5, 3.0))


def test_a_run_without_measurements(store, make_run):
    run = make_run(measurements=())
    store.add(run)
    assert store.run("r1") == run
    assert list(store.runs()) == [run_summary(run)]


def test_what_was_added_is_there_when_opened_again(url, make_run):
    with open_store(url) as store:
        store.add(make_run())
    with open_store(url) as store:
        assert store.run("r1") == make_run()
        assert store.url == url


def test_the_same_run_twice_is_recorded_once(store, make_run):
    assert store.add(make_run()) is True
    assert store.add(make_run()) is False
    assert len(store.runs()) == 1
    assert list(store.cells()) == cells_of(make_run())


def test_text_from_outside_comes_back_as_it_was(store, make_run):
    hostile = "'); DROP TABLE runs; -- %s {0} \" µ 名前 👩‍💻"
    run = make_run()
    commit = dataclasses.replace(run.commit, subject=hostile, branch=hostile)
    failed = dataclasses.replace(run.measurements[2], message=hostile + "\n\ttwo")
    run = dataclasses.replace(run, commit=commit, measurements=(failed,))
    store.add(run)
    assert store.run("r1") == run
    assert store.cells()[0].message == failed.message


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"duration_s": float("nan")}, "run r1 cannot be recorded: duration_s: expected a finite"),
        ({"trigger": "\ud800"}, "trigger: "),
        ({"run_id": "a b"}, "run a b cannot be recorded: run_id: 'a b' is no run id"),
    ],
)
def test_what_could_not_be_read_back_is_not_recorded(store, make_run, change, said):
    with pytest.raises(StoreError, match=said):
        store.add(dataclasses.replace(make_run(), **change))
    assert list(store.runs()) == []


# Finding runs


def test_a_unique_beginning_of_the_id_is_enough(store, make_run):
    for run_id in ("abc1", "abd", "abdx", "ABC9", "a_x", "azx"):
        store.add(make_run(run_id))
    assert store.run("abc").run_id == "abc1"
    assert store.run("abd").run_id == "abd"  # an id that is another's beginning
    assert store.run("A").run_id == "ABC9"  # upper case is another letter
    assert store.run("a_").run_id == "a_x"  # no wildcard


@pytest.mark.parametrize("run_id", ["nothing", "", "%", "_", "r1' OR '1'='1", "\x1b[2J"])
def test_no_such_run_is_said(store, make_run, run_id):
    store.add(make_run())
    with pytest.raises(StoreError, match=r"no run ['\"].*['\"] in the store") as caught:
        store.run(run_id)
    assert str(caught.value).isprintable()
    with pytest.raises(StoreError, match=r"no run ['\"].*['\"] in the store"):
        store.remove(run_id)


def test_several_such_runs_are_named(store, make_run):
    for run_id in ("abc", "abd", "abe", "abf"):
        store.add(make_run(run_id))
    with pytest.raises(StoreError) as caught:
        store.run("ab")
    assert str(caught.value) == (
        f"{store.url}: several runs begin with 'ab' (abc, abd, abe, …): give more of the id"
    )


def test_runs_come_newest_first_whatever_the_order_of_recording(store, make_run):
    for run_id, hours in [("b", 2), ("c", 3), ("a", 1), ("a2", 1)]:
        store.add(make_run(run_id, hours=hours))
    assert [run.run_id for run in store.runs()] == ["c", "b", "a", "a2"]
    assert [run.run_id for run in store.runs(limit=2)] == ["c", "b"]
    assert [run.status_counts for run in store.runs(limit=1)] == [
        run_summary(make_run()).status_counts
    ]
    assert list(store.runs(limit=0)) == []


def test_runs_by_commit_and_testbed(store, make_run):
    store.add(make_run("r1", sha="ab" * 20, testbed="one"))
    store.add(make_run("r2", sha="ac" * 20, testbed="two", hours=1))
    store.add(make_run("r3", sha="ab" * 32, testbed="two", hours=2))

    def ids(**wanted):
        return [run.run_id for run in store.runs(**wanted)]

    assert ids(sha_prefix="ab" * 20) == ["r3", "r1"]
    assert ids(sha_prefix="AC") == ["r2"]
    assert ids(sha_prefix="a%") == []
    assert ids(testbed="two") == ["r3", "r2"]
    assert ids(testbed="two", sha_prefix="ac") == ["r2"]
    assert ids(testbed="TWO") == []


def test_studies_of_noise_can_be_asked_for_and_left_out(store, make_run):
    for run_id, trigger in [("r1", "local"), ("r2", "noise"), ("r3", "noise")]:
        store.add(dataclasses.replace(make_run(run_id), trigger=trigger))

    def ids(studies):
        return [run.run_id for run in store.runs(studies=studies)]

    assert (ids(None), ids(True), ids(False)) == (["r1", "r2", "r3"], ["r2", "r3"], ["r1"])
    (newest,) = store.runs(studies=True, limit=1)
    assert newest.run_id == "r2"


def test_anchors_are_not_counted(store, make_run):
    kept = make_run("r1").measurements[0]
    anchor = dataclasses.replace(kept, kernel="perfci_copy")
    store.add(make_run("r1", measurements=(kept, anchor)))
    (summary,) = store.runs()
    assert summary.status_counts == ((Status.PASSED, 1),)
    assert summary == run_summary(store.run("r1"))
    assert [each.kernel for each in store.cells()] == [kept.kernel, "perfci_copy"]


def test_dirty_trees_and_times_are_kept_apart(store, make_run):
    dirty = make_run("r2", dirty="0123456789abcdef", hours=1)
    store.add(make_run("r1"))
    store.add(dirty)
    assert [run.commit.dirty for run in store.runs()] == ["0123456789abcdef", None]
    assert store.runs()[0].started_at - store.runs()[1].started_at == timedelta(hours=1)


# Cells


def test_cells_by_run_and_kernel(store, make_run):
    runs = [make_run(f"r{n}", hours=-n) for n in range(3)]
    for run in runs:
        store.add(run)
    assert len(store.cells()) == 9
    assert list(store.cells(run_ids=["r1"])) == cells_of(runs[1])
    assert list(store.cells(run_ids={"r1"}, kernel="rope")) == cells_of(runs[1])[:2]
    assert [each.run_id for each in store.cells(kernel="add")] == ["r0", "r1", "r2"]
    assert list(store.cells(run_ids=[])) == []
    assert list(store.cells(run_ids=["absent"])) == []
    assert list(store.cells(run_ids=["r"])) == []
    assert list(store.cells(kernel="ROPE")) == []
    many = [f"x{n}" for n in range(40_000)]
    assert list(store.cells(run_ids=[*many, "r2", "r2"])) == cells_of(runs[2])


def large_run(make_run, cells, passes, samples):
    source = random.Random(1)
    contract = Contract(timer="cpu", version=1, l2="none", warm_up="a", inputs="b")
    # In an order that is no alphabet's, so that only the recorded order gives it back.
    numbers = source.sample(range(cells), cells)
    return make_run(
        measurements=tuple(
            Measurement(
                kernel=f"k{number % 7}",
                case=f"c{number}",
                variant="v",
                contract=contract,
                status=Status.PASSED,
                passes=tuple(
                    Pass(
                        index=index,
                        samples_ns=tuple(source.uniform(1e3, 1e6) for _ in range(samples)),
                    )
                    for index in range(passes)
                ),
                metrics=tuple(
                    Metric(name=name, value=source.random(), unit="") for name in ("b", "a")
                ),
            )
            for number in numbers
        )
    )


def test_a_large_run_comes_back_in_recorded_order(store, make_run):
    run = large_run(make_run, cells=300, passes=10, samples=60)
    store.add(run)
    assert list(store.cells()) == cells_of(run)
    assert store.run("r1") == run


# Removing


def test_removing_takes_a_run_and_all_its_parts(store, make_run):
    store.add(make_run("r1"))
    store.add(make_run("r10"))
    store.remove("r1")
    assert [run.run_id for run in store.runs()] == ["r10"]
    assert list(store.cells()) == cells_of(make_run("r10"))
    assert store.run("r10") == make_run("r10")
    assert store.add(make_run("r1")) is True
    assert store.run("r1") == make_run("r1")


def test_removing_wants_the_whole_id(store, make_run):
    store.add(make_run("abc"))
    with pytest.raises(StoreError, match="no run 'ab' in the store"):
        store.remove("ab")
    assert len(store.runs()) == 1


# Several processes

ADD = """
import sys
from pathlib import Path
from perfci.history.codec import read_run_file
from perfci.history.stores import open_store

url, *paths = sys.argv[1:]
runs = [read_run_file(Path(path)) for path in paths]
print("ready", flush=True)
sys.stdin.readline()
with open_store(url) as store:
    print(*[store.add(run) for run in runs])
"""


def add_at_once(url, *path_lists):
    """What each of several processes that begin together was told by ``add``."""
    adders = [
        subprocess.Popen(
            [sys.executable, "-c", ADD, url, *map(str, paths)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for paths in path_lists
    ]
    for each in adders:
        assert each.stdout.readline() == "ready\n"
    for each in adders:
        each.stdin.write("go\n")
        each.stdin.flush()
    answers = [each.communicate()[0].split() for each in adders]
    assert [each.returncode for each in adders] == [0] * len(adders)
    return answers


def test_several_processes_add_the_same_run_to_a_new_store(url, make_run, tmp_path):
    path = tmp_path / "run.json.gz"
    run = large_run(make_run, cells=20, passes=3, samples=50)
    write_run_file(path, run)
    answers = add_at_once(url, *[[path]] * 4)
    assert sorted(answers) == [["False"], ["False"], ["False"], ["True"]]
    with open_store(url) as store:
        assert store.run("r1") == run


def test_several_processes_add_different_runs(url, make_run, tmp_path):
    path_lists = [[tmp_path / f"{a}{b}.json.gz" for b in range(5)] for a in range(3)]
    for paths in path_lists:
        for path in paths:
            write_run_file(path, make_run(path.name.partition(".")[0]))
    assert add_at_once(url, *path_lists) == [["True"] * 5] * 3
    with open_store(url) as store:
        assert len(store.runs()) == 15
        assert len(store.cells()) == 45
