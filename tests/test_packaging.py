"""What an installation brings: one import name, everything that the program reads, a script."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import records

from perfci.history.codec import write_run_file

_ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """A wheel of what git tracks, built as `pip install .` would."""
    pytest.importorskip("setuptools", reason="needs setuptools to build a wheel")
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=_ROOT, capture_output=True, text=True, check=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (_ROOT / name).exists():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(_ROOT / name, source / name, follow_symlinks=False)
    command = ["pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run(
        [sys.executable, "-m", *command, "--wheel-dir", str(target), str(source)], check=True
    )
    (built,) = target.glob("*.whl")
    return zipfile.ZipFile(built)


@pytest.mark.long
def test_one_top_level_name(wheel: zipfile.ZipFile) -> None:
    names = {name.partition("/")[0] for name in wheel.namelist()}
    assert {name for name in names if not name.endswith(".dist-info")} == {"perfci"}


@pytest.mark.long
def test_everything_that_is_read_is_there(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    tracked = subprocess.run(
        ["git", "ls-files", "perfci", "history", "dashboard"],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    links = ("perfci/history", "perfci/dashboard")
    wanted = {
        name if name.startswith("perfci/") else f"perfci/{name}"
        for name in tracked
        if name not in links
    }
    assert wanted - names == set()


@pytest.mark.long
def test_an_installed_perfci_runs_without_its_checkout(
    wheel: zipfile.ZipFile, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    wheel.extractall(site)
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import perfci; "
        "assert perfci.__file__.startswith(sys.argv[1]); "
        "from pathlib import Path; from perfci.history.codec import read_run_file; "
        "from perfci.history.stores import open_store; "
        "open_store(sys.argv[2]).add(read_run_file(Path(sys.argv[3]))); "
        "from perfci.dashboard.app import create_app; create_app(sys.argv[2]); print('runs')"
    )
    file = tmp_path / "run.json.gz"
    write_run_file(file, records.run())
    url = f"sqlite:///{tmp_path / 'history.db'}"
    ended = subprocess.run(
        [sys.executable, "-I", "-c", program, str(site), url, str(file)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout == "runs\n", ended.stderr
