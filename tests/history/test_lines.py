"""The branch that others are merged into, and the line that a commit is filed under."""

import pytest

from perfci.history.commits import default_branch, is_ancestor, is_unchanged, last_tag, line_of
from perfci.history.errors import CommitError

_USUAL = ("trunk", "main", "master")


def test_without_a_remote_it_is_the_first_usual_name_that_is_here(repository):
    repository.commit("a")
    assert default_branch(repository.path, _USUAL) == "main"
    repository.git("branch", "trunk")
    assert default_branch(repository.path, _USUAL) == "trunk"
    with pytest.raises(CommitError, match="neither origin/HEAD nor dev is here"):
        default_branch(repository.path, ("dev",))


def test_what_the_remote_names_goes_before_every_usual_name(repository):
    repository.commit("a")
    repository.git("branch", "-m", "develop")
    clone = repository.clone("clone")
    assert default_branch(clone.path, _USUAL) == "origin/develop"


def test_a_commit_is_on_a_branch_s_line_only_where_its_first_parents_hold_it(repository):
    first = repository.commit("a")
    repository.git("checkout", "-qb", "topic")
    second = repository.commit("b")
    root = repository.path
    assert line_of(root, first, "main") == "main"
    assert line_of(root, second, "main") == "topic"
    repository.git("checkout", "-q", "--detach")
    assert line_of(root, second, "main") == f"main..{second[:10]}"


def test_what_is_not_pushed_yet_is_not_on_the_remote_s_line(repository):
    first = repository.commit("a")
    clone = repository.clone("clone")
    second = clone.commit("ahead")
    assert line_of(clone.path, first, "origin/main") == "main"
    assert line_of(clone.path, second, "origin/main") == f"main..{second[:10]}"


def test_ancestors_and_tags(repository):
    first, second = repository.commit("a"), repository.commit("b")
    root = repository.path
    assert is_ancestor(root, first, second)
    assert is_ancestor(root, first, first)
    assert not is_ancestor(root, second, first)
    assert last_tag(root, second) is None
    repository.git("tag", "v1.0", first)
    assert last_tag(root, second) == "v1.0"


def test_a_path_is_unchanged_where_tree_and_commits_agree(repository):
    root = repository.path
    repository.write("lib/a.py", "1")
    first = repository.commit("a", file="other")
    second = repository.commit("b", file="other")
    assert is_unchanged(root, root / "lib", first, second)
    assert is_unchanged(root, root / "lib", first, None)
    repository.write("lib/b.py", "new")
    assert not is_unchanged(root, root / "lib", first, second)
    (root / "lib/b.py").unlink()
    repository.write("lib/a.py", "2")
    assert not is_unchanged(root, root / "lib", first, None)
    third = repository.commit("c", file="lib/a.py")
    assert not is_unchanged(root, root / "lib", first, third)
    assert is_unchanged(root, root / "lib", third, None)
