"""The environments of two sides: what each sees, and what is left of making it."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import scratch
import sided

from perfci.config import load_config
from perfci.environments.installation import Installation
from perfci.errors import BuildEnvironmentError
from perfci.gate.environments import furnished
from perfci.gate.sides import Sides, check_out, find_ends
from perfci.progress import LineObserver

_BACKEND = """\
import pathlib
import zipfile

ABOUT = "own-1.0.dist-info"


def build_wheel(folder, config_settings=None, metadata_directory=None):
    pathlib.Path("left_behind").write_text("")
    name = "own-1.0-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder, name), "w") as wheel:
        wheel.write("own.py")
        wheel.writestr(f"{ABOUT}/METADATA", "Metadata-Version: 2.1\\nName: own\\nVersion: 1.0\\n")
        wheel.writestr(f"{ABOUT}/WHEEL", "Wheel-Version: 1.0\\nTag: py3-none-any\\n")
        wheel.writestr(f"{ABOUT}/RECORD", "")
    return name
"""
_PROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository that installs a package of its own, committed once."""
    root = sided.start(tmp_path / "root")
    package = root / "package"
    package.mkdir()
    (package / "pyproject.toml").write_text(_PROJECT)
    (package / "backend.py").write_text(_BACKEND)
    (package / "own.py").write_text("VERSION = 1\n")
    with (root / "requirements.txt").open("a") as file:
        file.write("./package\n")
    scratch.commit_all(root, "one")
    return root


@contextmanager
def _furnished(root: Path, base: str, head: str | None = None) -> Iterator[Sides]:
    config = load_config(root, environment={}, cache=str(root.parent / "cache"))
    ends = find_ends(root, config, base=base, head=head)
    with (
        check_out(config, root, ends) as sides,
        furnished(sides, LineObserver()) as lodged,
    ):
        yield lodged


def _version(installation: Installation | None) -> str:
    assert installation is not None
    program = "import own; print(own.VERSION)"
    command = [str(installation.python), "-I", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("is_committed", [True, False])
def test_each_side_has_the_package_of_its_own_checkout(root: Path, is_committed: bool) -> None:
    (root / "package/own.py").write_text("VERSION = 2\n")
    (root / "package/gone.py").write_text("")
    if is_committed:
        scratch.commit_all(root, "two")
    before = scratch.git(root, "status", "--porcelain")
    base = "HEAD~1" if is_committed else "HEAD"
    with _furnished(root, base, "HEAD" if is_committed else None) as sides:
        assert [_version(each) for each in sides.installations] == ["1", "2"]
        for kernels, own in zip(
            (sides.baseline, sides.contender), sides.installations, strict=True
        ):
            assert {v.installation for each in kernels for v in each.variants} == {own}
        assert sides.environment_change.startswith("other requirements")
    assert scratch.git(root, "status", "--porcelain") == before
    assert len(scratch.git(root, "worktree", "list").splitlines()) == 1


def test_a_side_that_asks_for_nothing_has_the_environment_of_perfci(root: Path) -> None:
    settings = (root / "pyproject.toml").read_text()
    (root / "pyproject.toml").write_text(settings.replace("environment", "# environment"))
    with _furnished(root, "HEAD") as sides:
        before, after = sides.installations
        assert _version(before) == "1"
        assert after is None
        assert "torch 2.12.0 → " in sides.environment_change


def test_what_both_ask_for_is_not_made(root: Path) -> None:
    (root / "README.md").write_text("A kernel.\n")
    with _furnished(root, "HEAD") as sides:
        assert sides.installations == (None, None)
        assert sides.environment_change == ""
    assert not (root.parent / "cache/environments").exists()


def test_what_cannot_be_built_is_the_side_s(root: Path) -> None:
    (root / "package/backend.py").write_text("def build_wheel(*_):\n    raise ValueError('no')\n")
    with (
        pytest.raises(BuildEnvironmentError, match=r"the head's .*: ValueError: no \(all of it"),
        _furnished(root, "HEAD"),
    ):
        pass
