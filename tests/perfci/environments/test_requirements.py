"""What decides an environment: when two checkouts ask for the same one."""

from collections.abc import Callable
from pathlib import Path

import pytest
import scratch
import wheels

from perfci.environments.requirements import Requirements, read_requirements
from perfci.errors import ConfigurationError

_FIRST = """\
--find-links ./wheels
-r more/base.txt
pace==1.0  # what it was measured with

./package[fast]
"""
_PROJECT = '[project]\nname = "x"\ndependencies = ["torch==2.12", "pace"]\n'


def _write(root: Path) -> None:
    for folder in ("more", "package", "wheels"):
        (root / folder).mkdir(parents=True)
    (root / "requirements.txt").write_text(_FIRST)
    (root / "more/base.txt").write_text("torch==2.12 \\\n  --hash=sha256:00\n-c limits.txt\n")
    (root / "more/limits.txt").write_text("numpy<3\n")
    (root / "package/module.py").write_text("X = 1\n")
    (root / "pyproject.toml").write_text(_PROJECT)
    wheels.write_wheel(root / "wheels", "pace", "1.0", {"pace.py": "X = 1\n"})


def _read(root: Path, *files: str) -> Requirements:
    found = read_requirements(root, files or ("requirements.txt",))
    assert found is not None
    return found


def _edit(path: str, before: str, after: str) -> Callable[[Path], object]:
    def edit(root: Path) -> None:
        text = (root / path).read_text()
        assert before in text
        (root / path).write_text(text.replace(before, after))

    return edit


@pytest.mark.parametrize(
    ("change", "is_same"),
    [
        (lambda _: None, True),
        (_edit("requirements.txt", "what it was", "all that is"), True),
        (_edit("requirements.txt", "\n\n", "\n"), True),
        (_edit("pyproject.toml", "pace", "other"), True),
        (_edit("requirements.txt", "==1.0", "==1.1"), False),
        (_edit("more/base.txt", "2.12", "2.13"), False),
        (_edit("more/limits.txt", "<3", "<2"), False),
        (_edit("package/module.py", "1", "2"), False),
        (
            lambda root: wheels.write_wheel(root / "wheels", "pace", "1.0", {"pace.py": "X = 2\n"}),
            False,
        ),
    ],
    ids=[
        "nothing",
        "comment",
        "blank line",
        "another file",
        "version",
        "included",
        "constraint",
        "package of the tree",
        "wheel of the tree",
    ],
)
def test_a_digest_is_of_all_that_decides(
    tmp_path: Path, change: Callable[[Path], object], is_same: bool
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for root in (one, other):
        _write(root)
    change(other)
    assert (_read(one).digest == _read(other).digest) is is_same


def test_files_that_git_ignores_decide_nothing(tmp_path: Path) -> None:
    _write(tmp_path)
    scratch.git(tmp_path, "init", "-q")
    (tmp_path / ".gitignore").write_text("build/\n")
    before = _read(tmp_path).digest
    (tmp_path / "package/build").mkdir()
    (tmp_path / "package/build/module.o").write_bytes(b"\0")
    assert _read(tmp_path).digest == before
    (tmp_path / "package/other.py").write_text("")
    assert _read(tmp_path).digest != before


def test_a_pyproject_decides_by_what_it_depends_on(tmp_path: Path) -> None:
    _write(tmp_path)
    found = _read(tmp_path, "pyproject.toml", "more/base.txt")
    assert found.words == ["-r", "more/base.txt", "--", "torch==2.12", "pace"]
    _edit("pyproject.toml", '"x"', '"y"')(tmp_path)
    assert _read(tmp_path, "pyproject.toml", "more/base.txt").digest == found.digest
    _edit("pyproject.toml", "2.12", "2.13")(tmp_path)
    assert _read(tmp_path, "pyproject.toml", "more/base.txt").digest != found.digest


def test_no_files_are_no_requirements(tmp_path: Path) -> None:
    assert read_requirements(tmp_path, ()) is None


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("none.txt", None, "none.txt: cannot be read"),
        ("more.txt", "-r none.txt\n", "none.txt: cannot be read"),
        ("own.txt", "-e .\n", "own.txt: '-e .' would install a checkout that is gone"),
        ("pyproject.toml", '[project]\nname = "x"\n', "lists no dependencies under .project."),
        ("pyproject.toml", "[project\n", "not valid TOML"),
    ],
)
def test_what_does_not_say_what_to_install_is_one_line(
    tmp_path: Path, name: str, text: str | None, message: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(ConfigurationError, match=message) as caught:
        read_requirements(tmp_path, (name,))
    assert "\n" not in str(caught.value)
