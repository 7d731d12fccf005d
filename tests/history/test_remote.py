"""A remote is reached as the user's repository reaches it, which stays as it was."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import scratch
from records import rich_run
from remotes import BRANCH, Checkout, Clone, changes_in, files_in, make_remote

from perfci.history.errors import SyncError
from perfci.history.remote import open_remote

_MIB = 2**20


def _contents(folder: Path) -> dict[str, str]:
    """A digest of every file below a folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _attached(path: Path) -> None:
    scratch.git(path, "checkout", "-q", "main")


def _detached(path: Path) -> None:
    scratch.git(path, "checkout", "-q", "--detach")


def _changed(path: Path) -> None:
    (path / "f").write_text("changed")
    (path / "staged").write_text("new")
    scratch.git(path, "add", "staged")


def _with_hooks(path: Path) -> None:
    for name in ("pre-push", "reference-transaction", "post-index-change", "pre-commit"):
        hook = path / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch '{path}/{name} ran'\nexit 1\n")
        hook.chmod(0o755)


def _with_odd_settings(path: Path) -> None:
    for name, value in (
        ("push.default", "nothing"),
        ("push.followTags", "true"),
        ("remote.origin.mirror", "true"),
        ("remote.origin.push", "+refs/heads/*:refs/heads/*"),
        ("remote.origin.fetch", "+refs/*:refs/*"),
        ("fetch.prune", "true"),
        ("commit.gpgSign", "true"),
        ("gc.auto", "1"),
    ):
        scratch.git(path, "config", name, value)


@pytest.mark.parametrize("state", [_attached, _detached, _changed, _with_hooks, _with_odd_settings])
def test_a_clone_stays_as_it_was(
    remote: Path, tmp_path: Path, clone: Callable[..., Clone], state: Callable[[Path], None]
) -> None:
    theirs = clone("theirs")
    theirs.record(rich_run("r1"))
    theirs.sync()
    work = tmp_path / "work"
    scratch.git(tmp_path, "clone", "-q", str(remote), str(work))
    (work / "f").write_text("one")
    scratch.git(work, "checkout", "-q", "--orphan", "main")
    scratch.commit_all(work, "one")
    scratch.git(work, "push", "-q", "origin", "main")
    state(work)
    ours = Clone(work)
    ours.record(rich_run("r2"))
    before = _contents(work)
    exchange = ours.sync()
    assert (exchange.sent, exchange.received) == (["r2"], ["r1"])
    assert _contents(work) == before
    assert scratch.git(remote, "for-each-ref", "--format=%(refname:short)").split() == [
        "main",
        BRANCH,
    ]


def test_a_shallow_clone_stays_as_shallow_as_it_was(
    remote: Path, tmp_path: Path, clone: Callable[..., Clone]
) -> None:
    clone("theirs").sync()
    checkout = Checkout(remote, "main")
    checkout.write("f", b"1")
    checkout.push()
    checkout.write("f", b"2")
    checkout.push()
    work = tmp_path / "work"
    scratch.git(tmp_path, "clone", "-q", "-b", "main", "--depth=1", f"file://{remote}", str(work))
    ours = Clone(work)
    ours.record(rich_run("r1"))
    before = _contents(work)
    assert ours.sync().sent == ["r1"]
    assert _contents(work) == before


def test_a_worktree_of_a_clone_will_do(tmp_path: Path, clone: Callable[..., Clone]) -> None:
    ours = clone()
    scratch.commit_all(ours.path, "one")
    scratch.git(ours.path, "worktree", "add", "-q", str(tmp_path / "tree"))
    tree = Clone(tmp_path / "tree")
    tree.record(rich_run("r1"))
    assert tree.sync().sent == ["r1"]


def _count_what_is_served(work: Path) -> Path:
    """Keep what the remote sends to a clone in a file."""
    served = work.parent / "served"
    script = work.parent / "upload-pack"
    script.write_text(f'#!/bin/sh\ngit upload-pack "$@" | tee -a {served}\n')
    script.chmod(0o755)
    scratch.git(work, "config", "remote.origin.uploadpack", str(script))
    return served


def test_one_run_is_sent_without_history_and_without_any_file(
    remote: Path, clone: Callable[..., Clone]
) -> None:
    ours = clone()
    checkout = Checkout(remote)
    for index in range(3):
        checkout.write("2026-03/large.json.gz", os.urandom(_MIB))
        checkout.write(f"2026-03/r{index}.json.gz", os.urandom(_MIB))
        checkout.push()
    ours.record(rich_run("ours"))
    served = _count_what_is_served(ours.path)
    assert ours.sync(receives=False).sent == ["ours"]
    assert 0 < served.stat().st_size < 5000
    assert len(files_in(remote)) == 5
    assert scratch.git(remote, "rev-list", "--count", BRANCH) == "4"


def test_only_files_that_are_not_here_are_fetched(
    remote: Path, clone: Callable[..., Clone]
) -> None:
    ours = clone()
    checkout = Checkout(remote)
    checkout.write("2026-03/ours.json.gz", os.urandom(_MIB))
    checkout.write("README.md", os.urandom(_MIB))
    checkout.write("2026-03/x", os.urandom(_MIB))
    checkout.push()
    ours.record(*(rich_run(f"r{index}") for index in range(3)))
    assert len(ours.sync().sent) == 3
    served = _count_what_is_served(ours.path)
    ours.sync()
    assert _MIB < served.stat().st_size < _MIB + 20_000  # the one that no run is in
    theirs = clone("theirs")
    theirs.record(rich_run("r0"))
    assert theirs.sync().received == ["r1", "r2"]


def test_a_remote_that_serves_no_parts_of_trees_will_do(
    remote: Path, clone: Callable[..., Clone]
) -> None:
    scratch.git(remote, "config", "--unset", "uploadpack.allowFilter")
    ours, theirs = clone("a"), clone("b")
    ours.record(rich_run("r1"))
    ours.sync()
    theirs.record(rich_run("r2"))
    exchange = theirs.sync()
    assert (exchange.sent, exchange.received) == (["r2"], ["r1"])


def test_the_clone_says_how_the_remote_is_reached(tmp_path: Path, remote: Path) -> None:
    ours = Clone.make(tmp_path / "a", "there:team/remote.git")
    scratch.git(ours.path, "config", f"url.{tmp_path}/.insteadOf", "there:team/")
    ours.record(rich_run("r1"))
    assert ours.sync().sent == ["r1"]
    assert files_in(remote) == ["2026-03/r1.json.gz"]


def test_settings_of_a_file_that_is_included_count(tmp_path: Path, remote: Path) -> None:
    """As a CI keeps the token of a job."""
    ours = Clone.make(tmp_path / "a", "there:team/remote.git")
    included = tmp_path / "included"
    included.write_text(f'[url "{tmp_path}/"]\n\tinsteadOf = there:team/\n')
    scratch.git(ours.path, "config", f"includeIf.gitdir:{ours.path}/.git.path", str(included))
    ours.record(rich_run("r1"))
    assert ours.sync().sent == ["r1"]


def test_settings_of_the_environment_count(
    tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = Clone.make(tmp_path / "a", "there:team/remote.git")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.{tmp_path}/.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "there:team/")
    ours.record(rich_run("r1"))
    assert ours.sync().sent == ["r1"]


def test_a_path_is_taken_from_the_clones_top(tmp_path: Path, remote: Path) -> None:
    ours = Clone.make(tmp_path / "a", "../remote.git")
    ours.record(rich_run("r1"))
    assert ours.sync().sent == ["r1"]
    assert files_in(remote) == ["2026-03/r1.json.gz"]


def test_what_is_pushed_elsewhere_is_pushed_there(tmp_path: Path, remote: Path) -> None:
    ours = Clone.make(tmp_path / "a", tmp_path / "copy.git")
    scratch.git(tmp_path, "clone", "-q", "--bare", str(remote), "copy.git")
    scratch.git(ours.path, "remote", "set-url", "--push", "origin", str(remote))
    ours.record(rich_run("r1"))
    assert ours.sync().sent == ["r1"]
    assert files_in(remote) == ["2026-03/r1.json.gz"]


def test_a_repository_of_longer_hashes(tmp_path: Path, clone: Callable[..., Clone]) -> None:
    folder = tmp_path / "long"
    folder.mkdir()
    remote = make_remote(folder, "--object-format=sha256")
    ours, theirs = (
        Clone.make(folder / name, remote, "--object-format=sha256") for name in ("a", "b")
    )
    ours.record(rich_run("r1"))
    assert ours.sync().sent == ["r1"]
    theirs.record(rich_run("r2"))
    assert theirs.sync().received == ["r1"]
    assert changes_in(remote) == ["A 2026-03/r1.json.gz", "A 2026-03/r2.json.gz"]


@pytest.mark.parametrize("name", ["upstream", "--upload-pack=touch x", "", "a\nb"])
def test_a_remote_that_nobody_added_is_named(clone: Callable[..., Clone], name: str) -> None:
    ours = clone()
    with (
        pytest.raises(SyncError, match=r"has no remote .* \(there are origin\): add it") as caught,
        open_remote(ours.path, name),
    ):
        pass
    assert "\n" not in str(caught.value)


def test_a_repository_without_remotes_is_told(tmp_path: Path, remote: Path) -> None:
    ours = Clone.make(tmp_path / "a", remote)
    scratch.git(ours.path, "remote", "remove", "origin")
    with (
        pytest.raises(SyncError, match=r"is none\): add it with git remote add origin URL$"),
        open_remote(ours.path, "origin"),
    ):
        pass


def test_without_room_for_what_goes_between_it_says_what_to_do(
    tmp_path: Path, clone: Callable[..., Clone], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, room = clone(), tmp_path / "room"
    monkeypatch.setattr("tempfile.tempdir", str(room))
    with pytest.raises(SyncError, match=r"no temporary folder can be made.*set TMPDIR"):
        ours.sync()
    room.mkdir()
    with open_remote(ours.path, "origin") as there:
        (folder,) = room.iterdir()
        (folder / "input").mkdir()  # which no file can be written to, as on a full disk
        with pytest.raises(SyncError, match=r"input cannot be written.*set TMPDIR"):
            there.push("perf-history-2026", None, {"a": b"b"})


def test_nothing_is_left_of_it(
    tmp_path: Path, clone: Callable[..., Clone], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    ours = clone()
    ours.record(rich_run("r1"))
    ours.sync()
    assert list(place.iterdir()) == []
