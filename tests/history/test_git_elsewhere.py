"""Git's hooks and their like point git at a repository; what is asked of is another one."""

import shutil
import sys

import pytest

from perfci.history.commits import head, repository_root, worktree
from perfci.history.errors import CommitError
from perfci.history.git import run_git


@pytest.fixture(params=["with GitPython", "without GitPython"])
def in_a_hook(request, monkeypatch, tmp_path):
    """The variables of a hook of another repository, which has no commit."""
    if request.param == "without GitPython":
        monkeypatch.setitem(sys.modules, "git", None)
    other = tmp_path / "other"
    run_git(tmp_path, "init", "--quiet", str(other))
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_PREFIX", "sub/")


def test_the_folder_says_which_repository_it_is(repository, in_a_hook):
    assert repository_root(repository.path) == repository.path


def test_a_commit_is_that_of_the_folder_and_its_tree_is_clean(repository, in_a_hook):
    sha = repository.commit()
    assert (head(repository.path).sha, head(repository.path).dirty) == (sha, None)


def test_a_worktree_is_made_of_the_folders_repository(repository, in_a_hook):
    repository.commit()
    with worktree(repository.path, "HEAD") as tree:
        assert (tree / ".git").is_file()
        assert repository_root(tree) == tree


def test_a_folder_in_no_repository_stays_so(tmp_path, in_a_hook):
    assert repository_root(tmp_path) is None


def test_git_not_installed_is_said(tmp_path, monkeypatch, in_a_hook):
    (tmp_path / "env").symlink_to(shutil.which("env"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CommitError, match="git is not installed"):
        run_git(tmp_path, "status")
