import subprocess
import sys

import pytest

from perfci.history.errors import CommitError
from perfci.history.git import ask_git, run_git


@pytest.fixture(params=["with GitPython", "without GitPython"])
def either_way(request, monkeypatch):
    if request.param == "without GitPython":
        monkeypatch.setitem(sys.modules, "git", None)


def test_output_comes_without_its_last_newline(repository, either_way):
    sha = repository.commit("one\n\ntwo\n")
    assert run_git(repository.path, "rev-parse", "HEAD") == sha
    assert run_git(repository.path, "log", "-1", "--format=%B").endswith("two\n")


def test_bytes_that_are_not_text_survive(repository, either_way):
    repository.write("f", "")
    (repository.path / "f").write_bytes(b"\xff\x00\n")
    blob = repository.git("hash-object", "-w", "f")
    output = run_git(repository.path, "cat-file", "blob", blob)
    assert output.encode("utf-8", "surrogateescape") == b"\xff\x00"


def test_variables_and_a_file_to_read_reach_git(repository, either_way):
    path = repository.write("input", "one\n")
    blob = ask_git(repository.path, "hash-object", "-w", "--stdin", reads=path).output
    assert repository.git("cat-file", "blob", blob) == "one"
    variables = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "a.b", "GIT_CONFIG_VALUE_0": "c"}
    assert ask_git(repository.path, "config", "a.b", variables=variables).output == "c"
    assert ask_git(repository.path, "hash-object", "--stdin").output == (
        "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"  # of nothing
    )


def test_failure_is_gits_complaint_on_one_line(repository, either_way):
    with pytest.raises(CommitError) as caught:
        run_git(repository.path, "cat-file", "commit", "0" * 40)
    message = str(caught.value)
    assert message.startswith(f"git cat-file in {repository.path}: fatal: ")
    assert "\n" not in message


def test_exit_status_without_a_complaint(repository, either_way):
    with pytest.raises(CommitError, match=r"git rev-parse in .*: exit status 1"):
        run_git(repository.path, "rev-parse", "--verify", "--quiet", "HEAD")
    assert ask_git(repository.path, "rev-parse", "--verify", "--quiet", "HEAD").status == 1


def test_a_folder_that_is_not_there_is_no_other_folder(tmp_path, either_way):
    with pytest.raises(CommitError, match="cannot change to"):
        run_git(tmp_path / "absent", "status")


def test_git_not_installed_is_said(repository, either_way, monkeypatch, tmp_path):
    ask_git(repository.path, "status")  # GitPython looks for git once, when it is imported
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CommitError, match="git is not installed: install it, or name"):
        run_git(repository.path, "status")


def test_nul_characters_are_refused(repository, either_way):
    with pytest.raises(CommitError, match="NUL"):
        run_git(repository.path, "rev-parse", "a\0b")


def test_hooks_do_not_run(repository, tmp_path, either_way):
    repository.commit()
    hook = repository.write(".git/hooks/post-checkout", f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    run_git(repository.path, "checkout", "--quiet", "--detach")
    assert not (tmp_path / "ran").exists()
    repository.git("checkout", "--quiet", "main")
    assert (tmp_path / "ran").exists()


def test_importing_history_of_commits_does_not_import_gitpython():
    program = "import sys, perfci.history.commits; sys.exit('git' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
