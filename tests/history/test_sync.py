"""Runs go through branches of a real bare repository, and nothing there is lost or replaced."""

import gzip
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import scratch
from records import rich_run
from remotes import BRANCH, Checkout, Clone, changes_in, files_in, write_hook

from perfci.history.codec import encode
from perfci.history.errors import OvertakenError, SyncError, UnreachableError
from perfci.history.sync import first_year

YEAR_H = 365 * 24.0


@pytest.fixture(params=["with GitPython", "without GitPython"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "without GitPython":
        monkeypatch.setitem(sys.modules, "git", None)


@pytest.mark.usefixtures("either_way")
def test_runs_go_out_and_come_in_as_they_were(remote: Path, clone: Callable[..., Clone]) -> None:
    ours, theirs = clone("a"), clone("b")
    ours.record(rich_run("r1"), rich_run("r2", hours=31 * 24))
    theirs.record(rich_run("r3"))
    assert sorted(ours.sync().sent) == ["r1", "r2"]
    second = theirs.sync()
    assert (second.sent, second.received) == (["r3"], ["r1", "r2"])
    assert ours.sync().received == ["r3"]
    assert (
        ours.runs()
        == theirs.runs()
        == {"r1": rich_run("r1"), "r2": rich_run("r2", hours=31 * 24), "r3": rich_run("r3")}
    )
    assert changes_in(remote) == [
        "A 2026-03/r1.json.gz",
        "A 2026-03/r3.json.gz",
        "A 2026-04/r2.json.gz",
    ]


def test_where_nothing_is_new_nothing_is_done(remote: Path, clone: Callable[..., Clone]) -> None:
    ours = clone()
    assert ours.sync().sent == []
    assert scratch.git(remote, "for-each-ref") == ""
    ours.record(rich_run("r1"))
    ours.sync()
    before = scratch.git(remote, "for-each-ref")
    again = ours.sync()
    assert (again.sent, again.received, again.refused) == ([], [], [])
    assert scratch.git(remote, "for-each-ref") == before


def test_each_year_has_its_branch_and_older_ones_are_received_when_asked_for(
    remote: Path, clone: Callable[..., Clone]
) -> None:
    ours, theirs = clone("a"), clone("b")
    ours.record(rich_run("now"), rich_run("then", hours=-YEAR_H))
    assert sorted(ours.sync().sent) == ["now", "then"]
    assert files_in(remote, "perf-history-2025") == ["2025-03/then.json.gz"]
    assert files_in(remote) == ["2026-03/now.json.gz"]
    assert theirs.sync().received == ["now"]
    assert theirs.sync(since=2025).received == ["then"]


def test_a_run_of_an_earlier_year_is_sent_and_its_neighbours_stay_there(
    remote: Path, clone: Callable[..., Clone]
) -> None:
    ours, theirs = clone("a"), clone("b")
    ours.record(rich_run("then", hours=-YEAR_H))
    ours.sync()
    theirs.record(rich_run("then-too", hours=-YEAR_H))
    exchange = theirs.sync()
    assert (exchange.sent, exchange.received) == (["then-too"], [])


def test_what_was_sent_in_earlier_years_is_not_looked_for_again(
    remote: Path, clone: Callable[..., Clone]
) -> None:
    ours = clone()
    ours.record(rich_run("then", hours=-YEAR_H))
    ours.sync()
    scratch.git(remote, "branch", "-D", "perf-history-2025")
    assert ours.sync().sent == []
    assert ours.sync(since=2025).sent == ["then"]


def test_in_january_the_last_year_is_received_too() -> None:
    assert first_year(datetime(2027, 1, 15, tzinfo=UTC)) == 2026
    assert first_year(datetime(2027, 2, 2, tzinfo=UTC)) == 2027


def test_a_place_follows_from_the_time_in_utc(remote: Path, clone: Callable[..., Clone]) -> None:
    ours, theirs = clone("a"), clone("b")
    start = datetime.fromisoformat("2027-01-01T00:30:00+02:00")
    ours.record(replace(rich_run("eve"), started_at=start))
    assert ours.sync().sent == ["eve"]
    assert files_in(remote) == ["2026-12/eve.json.gz"]
    assert theirs.sync().received == ["eve"]


def test_runs_of_dirty_trees_stay(remote: Path, clone: Callable[..., Clone]) -> None:
    ours = clone()
    ours.record(rich_run("clean"), rich_run("dirty", dirty="d1"))
    exchange = ours.sync()
    assert (exchange.sent, exchange.kept_back) == (["clean"], ["dirty"])
    assert files_in(remote) == ["2026-03/clean.json.gz"]


def test_one_way_only(remote: Path, clone: Callable[..., Clone]) -> None:
    ours, theirs = clone("a"), clone("b")
    ours.record(rich_run("r1"))
    theirs.record(rich_run("r2"))
    ours.sync()
    sent = theirs.sync(receives=False)
    assert (sent.sent, sent.received) == (["r2"], [])
    theirs.record(rich_run("r3"))
    received = theirs.sync(sends=False)
    assert (received.sent, received.received) == ([], ["r1"])
    assert files_in(remote) == ["2026-03/r1.json.gz", "2026-03/r2.json.gz"]


def test_a_store_that_was_lost_gets_everything_again(clone: Callable[..., Clone]) -> None:
    ours = clone()
    ours.record(rich_run("r1"))
    ours.sync()
    (ours.path.parent / "a.db").unlink()
    assert ours.sync().received == ["r1"]
    assert ours.runs() == {"r1": rich_run("r1")}


def test_damaged_notes_cost_nothing_but_time(remote: Path, clone: Callable[..., Clone]) -> None:
    ours = clone()
    ours.record(rich_run("r1"))
    ours.sync()
    (notes,) = (remote.parent / "notes").iterdir()
    for damaged in (b"\xff\x00 x\n\n ", b""):
        notes.write_bytes(damaged)
        exchange = ours.sync()
        assert (exchange.sent, exchange.received, exchange.refused) == ([], [], [])
    notes.unlink()
    notes.mkdir()
    assert ours.sync().refused == []


def test_what_was_looked_at_once_is_known(remote: Path, clone: Callable[..., Clone]) -> None:
    ours = clone()
    ours.record(rich_run("r1"), rich_run("r2"))
    ours.sync()
    seen: list[tuple[str, str]] = []
    (notes,) = (remote.parent / "notes").iterdir()
    notes.unlink()
    for expected in ([("compare", "r1"), ("compare", "r2")], []):
        seen.clear()
        ours.sync(observe=lambda phase, _done, _total, label: seen.append((phase, label)))
        assert seen == expected


def test_a_branch_that_was_lost_is_filled_again(remote: Path, clone: Callable[..., Clone]) -> None:
    ours = clone()
    ours.record(rich_run("r1"))
    ours.sync()
    scratch.git(remote, "branch", "-D", BRANCH)
    assert ours.sync().sent == ["r1"]


def test_a_large_exchange_goes_in_several_pushes(
    remote: Path, clone: Callable[..., Clone], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = clone("a"), clone("b")
    runs = [rich_run(f"r{index}") for index in range(7)]
    ours.record(*runs)
    monkeypatch.setattr("perfci.history.sync._LARGEST_PUSH_BYTES", 3 * len(encode(runs[0])) + 50)
    monkeypatch.setattr("perfci.history.sync._FILES_A_FETCH", 3)
    assert sorted(ours.sync().sent) == [each.run_id for each in runs]
    assert scratch.git(remote, "rev-list", "--count", BRANCH) == "3"
    assert theirs.sync().received == [each.run_id for each in runs]


class TestOvertaken:
    """Another push was faster."""

    def _meanwhile(self, ours: Clone, other: Clone) -> None:
        """Let the remote receive from another clone first, once, when ours pushes."""
        script = ours.path.parent / "receive-pack"
        runs = f"{sys.executable} -m perfci history sync"
        script.write_text(
            "#!/bin/sh\n"
            f"if mkdir {ours.path.parent}/once 2>/dev/null; then\n"
            f"  (cd {other.path} && {runs} --store {other.path}.db) >&2\n"
            "fi\n"
            'exec git receive-pack "$@"\n'
        )
        script.chmod(0o755)
        scratch.git(ours.path, "config", "remote.origin.receivepack", str(script))

    def test_ours_goes_on_top_of_it(self, remote: Path, clone: Callable[..., Clone]) -> None:
        ours, theirs = clone("a"), clone("b")
        ours.record(rich_run("r1"))
        theirs.record(rich_run("r2"))
        self._meanwhile(ours, theirs)
        exchange = ours.sync()
        assert (exchange.sent, exchange.received) == (["r1"], ["r2"])
        assert len(ours.waits_s) == 1
        assert changes_in(remote) == ["A 2026-03/r1.json.gz", "A 2026-03/r2.json.gz"]
        assert scratch.git(remote, "rev-list", "--count", BRANCH) == "2"

    def test_it_is_not_tried_for_ever(self, remote: Path, clone: Callable[..., Clone]) -> None:
        ours = clone()
        ours.record(rich_run("r1"))
        scratch.git(remote, "config", "core.filesRefLockTimeout", "0")
        (remote / "refs" / "heads" / f"{BRANCH}.lock").touch()  # somebody else is at it
        with pytest.raises(OvertakenError, match=r"others were faster .*: try again later"):
            ours.sync()
        assert len(ours.waits_s) == 39
        assert all(0 <= each <= 8 for each in ours.waits_s)
        assert len(set(ours.waits_s)) == 39


def test_a_push_whose_answer_is_lost_counts_once_it_is_seen(
    remote: Path, clone: Callable[..., Clone]
) -> None:
    ours = clone()
    ours.record(rich_run("r1"))
    write_hook(remote, "post-receive", "kill -9 $PPID")
    assert ours.sync().sent == ["r1"]
    assert len(ours.waits_s) == 1
    assert changes_in(remote) == ["A 2026-03/r1.json.gz"]


def test_a_refusal_is_told_at_once(remote: Path, clone: Callable[..., Clone]) -> None:
    ours = clone()
    ours.record(rich_run("r1"))
    write_hook(remote, "pre-receive", "echo 'this branch is read-only' >&2; exit 1")
    with pytest.raises(SyncError) as caught:
        ours.sync()
    message = str(caught.value)
    assert message.startswith("branch perf-history-2026 of origin cannot be pushed to: ")
    assert "pre-receive hook declined" in message
    assert "see to it that" in message
    assert "\n" not in message
    assert ours.waits_s == []


@pytest.mark.parametrize("hook", ["pre-receive", "update"])
def test_a_hook_may_say_anything_beside_its_refusal(
    remote: Path, clone: Callable[..., Clone], hook: str
) -> None:
    """Git says the like of a branch that has moved on, which is tried again and again."""
    ours = clone()
    ours.record(rich_run("r1"))
    words = "[rejected] cannot lock ref; failed to update; reference already exists"
    write_hook(remote, hook, f"echo '{words}' >&2; exit 1")
    with pytest.raises(SyncError, match=r"hook declined.*see to it that"):
        ours.sync()
    assert ours.waits_s == []


def test_a_remote_that_is_not_there_is_told_at_once(clone: Callable[..., Clone]) -> None:
    ours = clone()
    scratch.git(ours.path, "remote", "set-url", "origin", str(ours.path / "gone.git"))
    with pytest.raises(SyncError, match=r"remote origin cannot be read: .*does not appear to be"):
        ours.sync()
    assert ours.waits_s == []


def test_a_network_that_fails_is_tried_again_and_names_no_password(
    clone: Callable[..., Clone],
) -> None:
    ours = clone()
    scratch.git(ours.path, "remote", "set-url", "origin", "http://me:secret@127.0.0.1:1/x.git")
    with pytest.raises(UnreachableError, match="remote origin cannot be read: ") as caught:
        ours.sync()
    assert "secret" not in str(caught.value)
    assert "run the same command again" in str(caught.value)
    assert len(ours.waits_s) == 3


class TestForeign:
    """What comes from the branch is not trusted."""

    def test_what_can_be_no_run_file_is_named_and_left(
        self, remote: Path, clone: Callable[..., Clone]
    ) -> None:
        ours = clone()
        checkout = Checkout(remote)
        good = encode(rich_run("good"))
        for name in (
            "README.md",
            "2026-03/readme",
            "2026-03/bad name.json.gz",
            "2026-13/a.json.gz",
            "2025-03/a.json.gz",
            "2026-03/deep/a.json.gz",
            "2026-03/\x1b[31m\n.json.gz",
            f"2026-03/{'x' * 65}.json.gz",
            "perf-history-2026",
        ):
            checkout.write(name, good)
        checkout.write("2026-03/program.json.gz", good).chmod(0o755)
        (checkout.path / "2026-03/link.json.gz").symlink_to("/etc/passwd")
        checkout.write("2026-03/good.json.gz", good)
        tip = checkout.push()
        ours.record(rich_run("ours"))
        exchange = ours.sync()
        assert (exchange.sent, exchange.received, exchange.refused) == (["ours"], ["good"], [])
        assert {each.removeprefix(f"{BRANCH}:") for each in exchange.foreign} == {
            "README.md",
            "2026-03/readme",
            "2026-03/bad name.json.gz",
            "2026-13",
            "2025-03",
            "2026-03/deep",
            "2026-03/\ufffd[31m .json.gz",
            f"2026-03/{'x' * 65}.json.gz",
            "perf-history-2026",
            "2026-03/program.json.gz",
            "2026-03/link.json.gz",
        }
        assert (
            scratch.git(remote, "diff", "--name-status", tip, BRANCH) == "A\t2026-03/ours.json.gz"
        )

    def test_a_repository_in_the_branch_is_left(
        self, remote: Path, clone: Callable[..., Clone]
    ) -> None:
        ours = clone()
        checkout = Checkout(remote)
        sha = "1" * 40
        scratch.git(checkout.path, "update-index", "--add", "--cacheinfo", f"160000,{sha},2026-03")
        scratch.git(checkout.path, "commit", "-qm", "A submodule")
        scratch.git(checkout.path, "push", "-q", "origin", f"HEAD:{BRANCH}")
        ours.record(rich_run("ours"), rich_run("later", hours=31 * 24))
        exchange = ours.sync()
        assert exchange.sent == ["later"]
        assert exchange.foreign == [f"{BRANCH}:2026-03"]
        assert exchange.refused == [
            f"{BRANCH}:2026-03/ours.json.gz: something else lies there; remove it to send that run"
        ]

    def test_a_tree_without_end_is_not_walked(
        self, remote: Path, clone: Callable[..., Clone]
    ) -> None:
        ours = clone()
        checkout = Checkout(remote)
        checkout.write("x", b"")
        scratch.git(checkout.path, "add", "-A")
        tree = scratch.git(checkout.path, "write-tree")
        listing = checkout.path.parent / "listing"
        for _ in range(40):
            listing.write_text("".join(f"040000 tree {tree}\t2026-{m:02d}\n" for m in range(1, 13)))
            script = f"git mktree < {listing}"
            tree = scratch.git(checkout.path, "-c", f"alias.mk=!{script}", "mk")
        commit = scratch.git(checkout.path, "commit-tree", "-m", "bomb", tree)
        scratch.git(checkout.path, "push", "-q", "origin", f"{commit}:refs/heads/{BRANCH}")
        ours.record(rich_run("r1"))
        exchange = ours.sync()
        assert exchange.sent == ["r1"]
        assert len(exchange.foreign) == 144

    @pytest.mark.parametrize(
        ("contents", "reason"),
        [
            (b"", "empty"),
            (encode(rich_run("r1"))[:-9], "truncated"),
            (b"not a run", "not JSON"),
            (encode(rich_run("other")), "belongs at 2026-03/other.json.gz"),
            (encode(rich_run("r1", hours=31 * 24)), "belongs at 2026-04/r1.json.gz"),
        ],
    )
    def test_a_file_that_holds_no_run_of_that_place_is_named_and_left(
        self, remote: Path, clone: Callable[..., Clone], contents: bytes, reason: str
    ) -> None:
        ours, theirs = clone("a"), clone("b")
        checkout = Checkout(remote)
        checkout.write("2026-03/r1.json.gz", contents)
        checkout.write("2026-03/r2.json.gz", encode(rich_run("r2")))
        tip = checkout.push()
        exchange = ours.sync()
        assert exchange.received == ["r2"]
        (refused,) = exchange.refused
        assert refused.startswith(f"{BRANCH}:2026-03/r1.json.gz: ")
        assert reason in refused
        theirs.record(rich_run("r1"))
        assert theirs.sync().sent == []
        assert scratch.git(remote, "rev-parse", BRANCH) == tip

    def test_a_giant_is_not_read(
        self, remote: Path, clone: Callable[..., Clone], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ours = clone()
        checkout = Checkout(remote)
        checkout.write("2026-03/r1.json.gz", b"0" * 5000)
        checkout.push()
        monkeypatch.setattr("perfci.history.sync.LARGEST_RUN_BYTES", 4999)
        assert ours.sync().refused == [
            f"{BRANCH}:2026-03/r1.json.gz: 5000 bytes are more than a run has: not read"
        ]

    def test_the_same_id_with_other_contents_is_named_and_both_stay(
        self, remote: Path, clone: Callable[..., Clone]
    ) -> None:
        ours, theirs = clone("a"), clone("b")
        other = replace(rich_run("r1"), duration_s=99.0)
        ours.record(rich_run("r1"))
        theirs.record(other)
        ours.sync()
        for _ in range(2):
            exchange = theirs.sync()
            assert (exchange.sent, exchange.received) == ([], [])
            (refused,) = exchange.refused
            assert refused.startswith(f"{BRANCH}:2026-03/r1.json.gz: ")
            assert "has another run of this id; both stay" in refused
        assert theirs.runs() == {"r1": other}
        assert changes_in(remote) == ["A 2026-03/r1.json.gz"]

    def test_the_same_run_written_otherwise_is_the_same(
        self, remote: Path, clone: Callable[..., Clone]
    ) -> None:
        ours = clone()
        ours.record(rich_run("r1"))
        checkout = Checkout(remote)
        checkout.write("2026-03/r1.json.gz", gzip.decompress(encode(rich_run("r1"))))
        checkout.push()
        phases: list[str] = []
        for expected in (["compare", "receive"], []):
            phases.clear()
            exchange = ours.sync(observe=lambda phase, *_: phases.append(phase))
            assert (exchange.sent, exchange.received, exchange.refused) == ([], [], [])
            assert phases == expected

    def test_other_branches_are_not_looked_at(
        self, remote: Path, clone: Callable[..., Clone]
    ) -> None:
        ours = clone()
        Checkout(remote, "perf-history-20266").push()
        exchange = ours.sync()
        assert exchange.foreign == []
