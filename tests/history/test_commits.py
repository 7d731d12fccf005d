import subprocess
import threading
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from perfci.history.commits import (
    commit_range,
    explicit_commit,
    head,
    is_shallow,
    merge_base,
    read_commit,
    repository_root,
    resolve,
    worktree,
)
from perfci.history.errors import CommitError


@pytest.fixture
def line(repository):
    """Five commits on main, with dates that run backwards."""
    return repository, [repository.commit(f"c{n}", at=1_700_000_000 - 60 * n) for n in range(5)]


def merged(repository):
    """main: a, b, merge, d, with ``side`` (two commits) merged: shas by name."""
    shas = {"a": repository.commit("a")}
    repository.git("checkout", "-qb", "side")
    shas["s1"] = repository.commit("s1", file="s")
    shas["s2"] = repository.commit("s2", file="s")
    repository.git("checkout", "-q", "main")
    shas["b"] = repository.commit("b")
    repository.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    shas["merge"] = repository.git("rev-parse", "HEAD")
    shas["d"] = repository.commit("d")
    return shas


# Where


def test_repository_root_from_inside(repository):
    repository.write("deep/er/f", "")
    assert repository_root(repository.path / "deep" / "er") == repository.path.resolve()


def test_no_repository_is_none(tmp_path, repository):
    assert repository_root(tmp_path) is None
    bare = repository.clone("bare", "--bare")
    assert repository_root(bare.path) is None
    assert repository_root(repository.path / ".git") is None


def test_a_repository_that_git_refuses_is_an_error_not_none(repository, monkeypatch):
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(CommitError, match="dubious ownership"):
        repository_root(repository.path)


# Which


def test_resolve_names_of_every_kind(line):
    repository, shas = line
    repository.git("tag", "-a", "v1", "-m", "annotated", shas[1])
    repository.git("branch", "feature/wéird-名前", shas[2])
    for revision, sha in [
        ("HEAD", shas[4]),
        ("main~1", shas[3]),
        ("v1", shas[1]),
        ("feature/wéird-名前", shas[2]),
        (shas[0], shas[0]),
        (shas[0][:8], shas[0]),
    ]:
        assert resolve(repository.path, revision) == sha


@pytest.mark.parametrize("revision", ["abc", "main~99", "HEAD:f", "0" * 40, "main..main", "^HEAD"])
def test_what_names_no_commit_is_said(line, revision):
    repository, _ = line
    with pytest.raises(CommitError) as caught:
        resolve(repository.path, revision)
    assert str(caught.value) == (
        f"no commit {revision!r} in {repository.path}: check the spelling, or `git fetch` it first"
    )


@pytest.mark.parametrize("revision", ["", "-h", "--all", "--output=/tmp/x"])
def test_options_are_no_revisions(line, revision):
    with pytest.raises(CommitError, match="is no commit: give a SHA"):
        resolve(line[0].path, revision)


def test_a_revision_cannot_write_to_the_terminal(line):
    with pytest.raises(CommitError) as caught:
        resolve(line[0].path, "x\x1b[2J\ny")
    assert str(caught.value).isprintable()


def test_an_ambiguous_revision_is_said(repository):
    # Of a thousand commits, the same every time, some begin with the same four digits.
    stream = "".join(
        f"commit refs/heads/main\ncommitter A <a@example.org> {1_700_000_000 + n} +0000\ndata 0\n\n"
        for n in range(1000)
    )
    command = ["git", "-C", repository.path, "fast-import", "--quiet"]
    subprocess.run(command, input=stream.encode(), check=True)
    shas = sorted(repository.git("rev-list", "main").split())
    prefix = next(a[:4] for a, b in pairwise(shas) if a[:4] == b[:4])
    with pytest.raises(CommitError, match=r"names several objects in .*: give more of its digits"):
        resolve(repository.path, prefix)


def test_an_empty_repository_is_said(repository):
    for ask in (lambda: resolve(repository.path, "HEAD"), lambda: head(repository.path)):
        with pytest.raises(CommitError, match=r"no commit 'HEAD' .* has no commits yet"):
            ask()


def test_outside_of_a_repository_is_said(tmp_path, make_repository):
    with pytest.raises(CommitError, match="not a git repository"):
        resolve(tmp_path, "HEAD")


# What is known of a commit


def test_a_commit_and_its_place(line):
    repository, shas = line
    commit = read_commit(repository.path, "main~1")
    assert commit.sha == shas[3]
    assert commit.parents == (shas[2],)
    assert commit.position == 3
    assert commit.branch == "main"
    assert commit.subject == "c3"
    assert commit.dirty is None
    assert commit.committed_at == datetime.fromtimestamp(1_700_000_000 - 180, UTC)
    assert commit.committed_at.tzinfo is UTC


def test_position_counts_first_parents_only(repository):
    shas = merged(repository)
    commit = read_commit(repository.path, "HEAD~1")
    assert commit.parents == (shas["b"], shas["s2"])
    assert commit.position == 2
    assert read_commit(repository.path, shas["d"]).position == 3


def test_branch_is_the_current_one_only_for_its_own_line(repository):
    shas = merged(repository)
    assert read_commit(repository.path, shas["b"]).branch == "main"
    assert read_commit(repository.path, shas["s1"]).branch is None
    assert read_commit(repository.path, shas["s1"], branch="side").branch == "side"
    repository.git("checkout", "-q", "side")
    assert read_commit(repository.path, shas["s1"]).branch == "side"
    assert read_commit(repository.path, shas["b"]).branch is None


def test_detached_head_has_no_branch(line):
    repository, shas = line
    repository.git("checkout", "-q", shas[2])
    assert head(repository.path).branch is None
    assert head(repository.path).sha == shas[2]


@pytest.mark.parametrize("name", ["feature/x", "heads/main", "é名前", "a'b\"c;$(x)", "x@y"])
def test_weird_branch_names(line, name):
    repository, _ = line
    repository.git("checkout", "-qb", name)
    assert head(repository.path).branch == name


def commit_with_message(repository, message):
    # Git turns bytes that are not UTF-8 into UTF-8 unless the commit declares them.
    options = ("-c", "i18n.commitEncoding=ISO-8859-1", "-c", "user.name=x", "-c", "user.email=x")
    commit = ("commit", "-q", "--allow-empty", "--cleanup=verbatim", "-F-")
    command = ["git", "-C", repository.path, *options, *commit]
    subprocess.run(command, input=message, check=True)


@pytest.mark.parametrize(
    ("message", "subject"),
    [
        (b"plain\n\nbody\n", "plain"),
        (b"\n\nafter blank lines\n", "after blank lines"),
        (b"caf\xe9 latin\n", "caf\ufffd latin"),
        (b"\x1b[31mred\x07\n", "\ufffd[31mred\ufffd"),
        (b"carriage\rreturn\n", "carriage return"),
        ("µs – 名前 \u202eright\n".encode(), "µs – 名前 \ufffdright"),
        (b"x" * 500, "x" * 199 + "…"),
        (b"parent 1234567\ncommitter nobody> 1 +0000\n", "parent 1234567"),
        (b"", ""),
    ],
)
def test_the_subject_is_cleaned(repository, message, subject):
    if message:
        commit_with_message(repository, message)
    else:
        repository.git("commit", "-q", "--allow-empty", "--allow-empty-message", "-m", "")
    commit = head(repository.path)
    assert commit.subject == subject
    assert commit.parents == ()


def test_settings_of_the_user_do_not_change_what_is_read(line):
    repository, shas = line
    for key, value in [
        ("log.showSignature", "true"),
        ("core.pager", "false"),
        ("core.quotePath", "true"),
        ("status.showUntrackedFiles", "no"),
        ("color.ui", "always"),
    ]:
        repository.git("config", key, value)
    repository.write("untracked", "x")
    commit = head(repository.path)
    assert (commit.sha, commit.subject) == (shas[4], "c4")
    assert commit.dirty is not None


def test_replace_references_do_not_change_history(line):
    repository, shas = line
    repository.git("replace", shas[4], shas[0])
    assert head(repository.path).parents == (shas[3],)
    assert head(repository.path).position == 4


def test_head_says_whether_the_tree_is_clean(line):
    repository, _ = line
    assert head(repository.path).dirty is None
    repository.write("f", "changed")
    assert len(head(repository.path).dirty) == 16


def test_an_amended_commit_takes_its_predecessors_place(line):
    repository, shas = line
    repository.git("commit", "-q", "--amend", "-m", "amended")
    commit = head(repository.path)
    assert commit.sha != shas[4]
    assert (commit.position, commit.parents) == (4, (shas[3],))


def test_explicit_commit():
    before = datetime.now(UTC)
    commit = explicit_commit("ABCDEF1")
    assert (commit.sha, commit.position, commit.parents) == ("abcdef1", None, ())
    assert before <= commit.committed_at <= datetime.now(UTC)


@pytest.mark.parametrize("text", ["", "abc", "main", "g" * 40, "a" * 65, "abcdef1\n"])
def test_explicit_commit_wants_a_sha(text):
    with pytest.raises(CommitError, match="give 7 to 64 hexadecimal digits"):
        explicit_commit(text)


# SHA-256


def test_sha256_repositories(make_repository):
    repository = make_repository("long", "--object-format=sha256")
    first, second = repository.commit("one"), repository.commit("two")
    assert len(first) == 64
    commit = head(repository.path)
    assert (commit.sha, commit.parents, commit.position) == (second, (first,), 1)
    assert commit_range(repository.path, "HEAD~1..HEAD") == [second]
    assert merge_base(repository.path, "HEAD~1", "HEAD") == first
    repository.write("f", "x")
    assert head(repository.path).dirty is not None
    with worktree(repository.path, first) as path:
        assert (path / "f").read_text() == "one\n"


# Ranges


def test_a_range_is_oldest_first_whatever_the_dates(line):
    repository, shas = line
    assert commit_range(repository.path, f"{shas[1]}..main") == shas[2:]
    assert commit_range(repository.path, "HEAD..HEAD") == []


def test_a_range_follows_first_parents(repository):
    shas = merged(repository)
    assert commit_range(repository.path, f"{shas['a']}..main") == [
        shas[name] for name in ("b", "merge", "d")
    ]
    # From a commit that came in by the merge: what main had without it.
    assert commit_range(repository.path, f"{shas['s1']}..main") == [
        shas[name] for name in ("b", "merge", "d")
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("main", r"main: a range is written A..B; for one commit: main~1..main"),
        ("main~1...main", r"'...' has no order; write A..B, the older commit first"),
        ("..main", "with a commit on each side"),
        ("main..", "with a commit on each side"),
        ("main..main~1", r"main is no ancestor of main~1: .* did you mean main~1..main\?"),
        ("main..side", "main is no ancestor of side: a range A..B goes from an older commit"),
        ("nothing..main", "no commit 'nothing'"),
        ("--all..main", "'--all' is no commit"),
        ("main..-x", "'-x' is no commit"),
    ],
)
def test_a_range_that_is_none_is_refused(line, text, said):
    repository, shas = line
    repository.git("checkout", "-q", "-b", "side", shas[1])
    repository.commit("aside")
    with pytest.raises(CommitError, match=said):
        commit_range(repository.path, text)


def test_rebased_commits_are_no_longer_in_range(line):
    repository, shas = line
    repository.git("branch", "old")
    repository.git("checkout", "-q", "--detach", shas[0])
    repository.git("cherry-pick", "--keep-redundant-commits", "-X", "theirs", f"{shas[2]}..old")
    with pytest.raises(CommitError, match="is no ancestor of"):
        commit_range(repository.path, f"{shas[3]}..HEAD")


# Shallow clones


def test_shallow_clones_know_no_position_but_the_true_parents(line):
    repository, shas = line
    clone = repository.clone("shallow", "--depth=2")
    assert is_shallow(clone.path)
    assert not is_shallow(repository.path)
    commit = read_commit(clone.path, "HEAD~1")
    assert (commit.sha, commit.position, commit.parents) == (shas[3], None, (shas[2],))
    assert head(clone.path).position is None


def test_a_range_within_a_shallow_clone_works(line):
    repository, shas = line
    clone = repository.clone("shallow", "--depth=3")
    assert commit_range(clone.path, "HEAD~2..HEAD") == shas[3:]


def test_a_range_that_a_shallow_clone_cuts_is_an_error(repository):
    shas = merged(repository)
    clone = repository.clone("shallow", "--depth=2")
    with pytest.raises(CommitError, match="git fetch --unshallow"):
        commit_range(clone.path, f"{shas['a']}..HEAD")
    # b and s2 are where the clone is cut; s2 is an ancestor of d, but main's line is cut.
    with pytest.raises(CommitError, match=r"cut off here: .*git fetch --unshallow"):
        commit_range(repository.clone("cut", "--depth=3").path, f"{shas['s2']}..HEAD")


def test_merge_base_in_a_full_clone(repository):
    shas = merged(repository)
    repository.git("branch", "topic", shas["s1"])
    assert merge_base(repository.path, "main~2", "topic") == shas["a"]
    assert merge_base(repository.path, "main", "topic") == shas["s1"]
    assert merge_base(repository.path, "main", "main") == shas["d"]


def test_merge_base_beyond_a_shallow_clone_is_an_error(line):
    repository, shas = line
    repository.git("checkout", "-q", "-b", "side", shas[1])
    side = repository.commit("aside")
    clone = repository.clone("shallow", "--depth=2", "--no-single-branch")
    with pytest.raises(CommitError, match=r"merge base of .* is not here: .*--unshallow"):
        merge_base(clone.path, "origin/main", "origin/side")
    assert merge_base(clone.path, "origin/side", "origin/side~1") == shas[1]
    assert side == resolve(clone.path, "origin/side")


def test_merge_base_that_a_shallow_clone_gets_wrong_is_an_error(repository):
    # old … x … top, and a side that forked at x but also holds a merge of old: with x's link cut
    # off, git finds old, which is a common ancestor but not the best one.
    old = repository.commit("old")
    x = repository.commit("x")
    repository.commit("y")
    top = repository.commit("top")
    repository.git("checkout", "-q", "-b", "side", x)
    repository.commit("s1", file="s")
    side = repository.commit("s2", file="s")
    assert merge_base(repository.path, top, side) == x
    (repository.path / ".git" / "shallow").write_text(
        repository.git("rev-parse", f"{top}~1") + "\n"
    )
    merge = repository.git("commit-tree", f"{top}^{{tree}}", "-p", top, "-p", old, "-m", "merge")
    assert repository.git("merge-base", merge, side) == old
    with pytest.raises(CommitError, match=r"may not be here: .*--unshallow"):
        merge_base(repository.path, merge, side)


def test_unrelated_histories_are_said(line):
    repository, _ = line
    repository.git("checkout", "-q", "--orphan", "island")
    repository.commit("alone")
    with pytest.raises(CommitError, match="main and island have no common ancestor"):
        merge_base(repository.path, "main", "island")


# Worktrees


def worktrees(repository):
    return repository.git("worktree", "list").count("\n") + 1


def test_a_worktree_holds_that_commit_and_goes(line):
    repository, shas = line
    repository.write("f", "dirty in the main tree")
    with worktree(repository.path, shas[1]) as path:
        assert (path / "f").read_text() == "c0\nc1\n"
        assert head(path).sha == shas[1]
        assert worktrees(repository) == 2
    assert not path.exists()
    assert not path.parent.exists()
    assert worktrees(repository) == 1
    assert repository.git("branch", "--show-current") == "main"


def test_a_worktree_goes_after_an_exception_and_what_was_left_in_it(line):
    repository, shas = line
    seen = []

    def fail():
        with worktree(repository.path, shas[0]) as path:
            seen.append(path)
            (path / "left").mkdir()
            (path / "left" / "over").write_text("x")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert not seen[0].exists()
    assert worktrees(repository) == 1


def test_a_worktree_that_was_deleted_by_its_user_is_forgotten(line):
    repository, shas = line
    with worktree(repository.path, shas[0]) as path:
        for each in path.iterdir():
            each.unlink()
        path.rmdir()
    assert worktrees(repository) == 1


def test_other_peoples_worktrees_stay_known(line, tmp_path):
    repository, shas = line
    away = tmp_path / "away"
    repository.git("worktree", "add", "-q", "--detach", str(away), shas[0])
    away.rename(tmp_path / "unplugged")
    with worktree(repository.path, shas[0]):
        assert worktrees(repository) == 3
    assert worktrees(repository) == 2


def test_hooks_do_not_run_in_a_worktree(line, tmp_path):
    repository, shas = line
    hook = repository.write(".git/hooks/post-checkout", f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    with worktree(repository.path, shas[0]):
        assert not (tmp_path / "ran").exists()


def test_worktrees_side_by_side(line):
    repository, shas = line
    paths: list[Path] = []
    barrier = threading.Barrier(8)

    def use():
        with worktree(repository.path, shas[0]) as path:
            paths.append(path)
            barrier.wait(60)

    threads = [threading.Thread(target=use) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(set(paths)) == 8
    assert worktrees(repository) == 1


def test_a_worktree_of_no_commit_is_an_error(line):
    with pytest.raises(CommitError, match="no commit 'absent'"), worktree(line[0].path, "absent"):
        pass
    assert worktrees(line[0]) == 1
