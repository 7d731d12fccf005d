import os
from pathlib import Path

import pytest

from perfci.history.dirty import _content, tree_difference


@pytest.fixture
def tree(repository):
    repository.write("a.py", "one\n")
    repository.write("sub/b.py", "two\n")
    repository.write(".gitignore", "*.o\n")
    repository.commit()
    return repository


def test_clean_tree_has_no_difference(tree):
    tree.write("ignored.o", "x")
    (tree.path / "a.py").touch()
    assert tree_difference(tree.path) is None


def test_digest_is_stable_and_follows_contents(tree):
    tree.write("a.py", "changed\n")
    first = tree_difference(tree.path)
    assert len(first) == 16
    assert set(first) <= set("0123456789abcdef")
    assert tree_difference(tree.path) == first
    tree.write("a.py", "changed again\n")
    assert tree_difference(tree.path) not in (first, None)
    tree.write("a.py", "changed\n")
    assert tree_difference(tree.path) == first
    tree.write("a.py", "one\n")
    assert tree_difference(tree.path) is None


def test_staging_does_not_change_what_is_measured(tree):
    tree.write("a.py", "changed\n")
    tree.write("new.py", "new\n")
    unstaged = tree_difference(tree.path)
    tree.git("add", "--all")
    assert tree_difference(tree.path) == unstaged


def test_the_same_difference_in_another_clone_has_the_same_digest(tree):
    other = tree.clone("other")
    for each in (tree, other):
        each.write("sub/b.py", "changed\n")
        each.write("sub/new.py", "new\n")
    assert tree_difference(other.path) == tree_difference(tree.path) is not None


def _delete(tree):
    (tree.path / "a.py").unlink()


def _rename(tree):
    tree.git("mv", "a.py", "c.py")


def _binary(tree):
    (tree.path / "a.py").write_bytes(bytes(range(256)) * 300)


def _executable(tree):
    (tree.path / "a.py").chmod(0o755)


def _link(tree):
    (tree.path / "link").symlink_to("nowhere/at all")


def _link_instead_of_file(tree):
    (tree.path / "a.py").unlink()
    (tree.path / "a.py").symlink_to("sub/b.py")


def _file_instead_of_folder(tree):
    (tree.path / "sub" / "b.py").unlink()
    (tree.path / "sub").rmdir()
    tree.write("sub", "file\n")


def _removed_from_the_index_only(tree):
    tree.git("rm", "-q", "--cached", "a.py")


def _odd_names(tree):
    tree.write("two words\nand a line 'quoted' \"é\"", "x")
    with open(os.fsencode(tree.path) + b"/\xff\xfe", "wb") as file:  # noqa: PTH123
        file.write(b"x")


def _nested_repository(tree):
    nested = tree.path / "nested"
    nested.mkdir()
    tree.git("init", "-q", str(nested))
    (nested / "f").write_text("x")


def _conflict(tree):
    tree.git("checkout", "-qb", "other")
    tree.write("a.py", "theirs\n")
    tree.commit("theirs")
    tree.git("checkout", "-q", "main")
    tree.write("a.py", "ours\n")
    tree.commit("ours")
    with pytest.raises(Exception, match="status 1"):
        tree.git("merge", "other")


CHANGES = [
    _delete,
    _rename,
    _binary,
    _executable,
    _link,
    _link_instead_of_file,
    _file_instead_of_folder,
    _removed_from_the_index_only,
    _odd_names,
    _nested_repository,
    _conflict,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_every_kind_of_change_is_seen(tree, change):
    change(tree)
    assert len(tree_difference(tree.path)) == 16


def test_all_kinds_differ_from_each_other(tree):
    seen = []
    for name, change in enumerate(CHANGES[:9]):
        copy = tree.clone(f"copy-{name}")
        change(copy)
        seen.append(tree_difference(copy.path))
    assert len(set(seen)) == len(seen)


def test_a_submodules_commit_and_contents_count(tree, make_repository):
    library = make_repository("library")
    library.commit("one")
    allow = ("-c", "protocol.file.allow=always")
    tree.git(*allow, "submodule", "--quiet", "add", str(library.path), "library")
    tree.commit("add a submodule")
    assert tree_difference(tree.path) is None

    tree.write("library/f", "changed\n")
    changed = tree_difference(tree.path)
    tree.write("library/f", "changed otherwise\n")
    otherwise = tree_difference(tree.path)
    tree.git("-C", "library", "commit", "-qam", "moved on")
    moved = tree_difference(tree.path)
    assert None not in (changed, otherwise, moved)
    assert len({changed, otherwise, moved}) == 3


def test_a_file_that_cannot_be_read_is_no_crash():
    # Nothing is mapped at its start, so that not even root reads it.
    assert _content(Path("/proc/self/mem")) == "unreadable"


def test_a_link_to_itself_is_no_crash(tree):
    (tree.path / "loop").symlink_to("loop")
    assert tree_difference(tree.path) is not None
