"""perfci ci by itself: from an event to a verdict in one job, as under GitLab or cron."""

from pathlib import Path

import events
import pytest
import scratch
from stores import make_store

from perfci.ci.act import Act
from perfci.ci.parcel import read_parcel
from perfci.history.model import RunSummary
from perfci.history.stores import open_store

_SLOWER = scratch.body("for (int r = 0; r < 8; ++r) for (int64_t i = 0; i < count; ++i)"
                       " ((volatile float *)y->data)[i] = r;")  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A clone with a kernel at main, and a remote."""
    root, remote = tmp_path / "root", tmp_path / "remote.git"
    scratch.quick(root)
    scratch.write_kernel(root)
    (root / ".gitignore").write_text(".perfci/\n")
    scratch.git(root, "init", "-q")
    scratch.git(tmp_path, "init", "-q", "--bare", str(remote))
    scratch.git(root, "remote", "add", "origin", f"file://{remote}")
    scratch.commit_all(root, "one")
    scratch.git(root, "push", "-q", "origin", "main")
    return root


def _stored(root: Path) -> list[RunSummary]:
    with open_store(f"sqlite:///{root}/.perfci/history.db") as store:
        return list(store.runs())


def _topic(root: Path, text: str) -> dict[str, str]:
    """A job of GitLab's about a merge request that changes the kernel."""
    scratch.git(root, "switch", "-q", "-c", "topic")
    (root / "kernels/axpb/plain.cpp").write_text(text)
    head = scratch.commit_all(root, "Change")
    scratch.git(root, "push", "-q", "origin", "HEAD")
    scratch.git(root, "switch", "-q", "--detach")
    base = scratch.git(root, "rev-parse", "main")
    return events.gitlab("merge_request", shas={events.BASE: base, events.HEAD: head})


def test_a_cron_job_records_what_it_runs(root: Path) -> None:
    for _ in range(2):
        ended = scratch.perfci(root, "ci", "--device", "cpu", "--input", "act=run")
        assert ended.returncode == 0, ended.stderr
    runs = _stored(root)
    head = scratch.git(root, "rev-parse", "HEAD")
    assert {(run.commit.sha, run.commit.branch, run.trigger) for run in runs} == {
        (head, "main", "dispatch")
    }
    assert len(runs) == 2
    folders = sorted((root / ".perfci/ci").iterdir())
    assert [read_parcel(each / "parcel").act for each in folders] == [Act.RUN, Act.RUN]
    assert all((each / "verdict.json").is_file() for each in folders)


@pytest.mark.long
def test_a_slower_merge_request_fails_the_job_and_records_nothing(root: Path) -> None:
    out = root.parent / "out"
    job = _topic(root, _SLOWER)
    ended = scratch.perfci(root, "ci", "--device", "cpu", "--out", out, variables=job)
    assert ended.returncode == 1, ended.stderr
    assert "1 slower" in ended.stdout
    assert "plain" in (out / "comment.md").read_text()
    assert not (root / ".perfci").exists()


def test_the_same_code_passes(root: Path) -> None:
    job = _topic(root, f"// What it does.\n{scratch.PLAIN}")
    out = root.parent / "out"
    ended = scratch.perfci(root, "ci", "--device", "cpu", "--out", out, variables=job)
    assert ended.returncode == 0, ended.stderr
    assert not (root / ".perfci").exists()


def test_where_nothing_is_to_be_done_nothing_is(root: Path) -> None:
    scratch.git(root, "switch", "-q", "-c", "topic")
    job = events.gitlab(
        "push_new_branch", shas={events.HEAD: scratch.git(root, "rev-parse", "main")}
    )
    ended = scratch.perfci(root, "ci", "--device", "cpu", variables=job)
    assert ended.returncode == 0, ended.stderr
    assert "topic is not main" in ended.stdout


def test_a_fork_is_not_green(root: Path) -> None:
    job = _topic(root, _SLOWER)
    job |= {"CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "2003"}
    ended = scratch.perfci(root, "ci", "--device", "cpu", variables=job)
    assert ended.returncode == 9, ended.stderr
    assert not list((root / ".perfci").rglob("parcel.json"))


def test_a_runner_that_others_are_waited_for_beside_is_not_enough(root: Path) -> None:
    with (root / "pyproject.toml").open("a") as file:
        file.write('[tool.perfci.ci]\nrunners = ["one", "two"]\n')
    scratch.commit_all(root, "Two runners")
    ended = scratch.perfci(root, "ci", "--device", "cpu", "--runner", "one", "--input", "act=run")
    assert ended.returncode == 9, ended.stderr
    assert "two: missing" in ended.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--runner", "a", "plan"], "give options behind the command: perfci ci plan"),
        (["--runner", "a/b"], "--runner a/b: letters"),
        (["--out", "kernels"], "is not empty"),
    ],
)
def test_what_cannot_be_meant_is_one_line(root: Path, arguments: list[str], words: str) -> None:
    make_store(f"sqlite:///{root}/.perfci/history.db").close()
    ended = scratch.perfci(root, "ci", *arguments)
    assert ended.returncode == 2
    assert ended.stderr.startswith("perfci: ")
    assert words in ended.stderr
    assert ended.stderr.count("\n") == 1
