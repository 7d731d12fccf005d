"""Environments that pip makes without a network: made once, used by all, removed in the end."""

import json
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
import sided
import wheels

from perfci.config import Config, load_config
from perfci.environments import installing
from perfci.environments.installation import Installation, describe_change, packages_of
from perfci.environments.installing import KEPT, installed
from perfci.environments.requirements import Requirements, read_requirements
from perfci.errors import BuildEnvironmentError


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return load_config(tmp_path, environment={}, cache=str(tmp_path / "cache"))


def _asked(root: Path, **versions: str) -> Requirements:
    """What a checkout with these versions asks for."""
    wheels.write_torch(root / "wheels", "2.12.0")
    wheels.write_wheel(root / "wheels", "pace", "1.0", {"pace.py": "VERSION = 1\n"})
    (root / "root").mkdir(exist_ok=True)
    sided.require(root / "root", **versions)
    asked = read_requirements(root / "root", ("requirements.txt",))
    assert asked is not None
    return asked


def _run(installation: Installation, program: str) -> str:
    command = [str(installation.python), "-I", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_an_environment_has_what_was_asked_for_and_is_made_once(
    tmp_path: Path, config: Config
) -> None:
    asked = _asked(tmp_path, torch="2.12.0", pace="1.0")
    with installed(asked, config, whose="the base's environment") as first:
        assert dict(first.packages)["pace"] == "1.0"
        assert dict(first.packages)["torch"] == "2.12.0"
        assert _run(first, "import pace; print(pace.VERSION)") == "1"
    shutil.rmtree(tmp_path / "wheels")  # pip would fail now
    with installed(asked, config, whose="the base's environment") as second:
        assert second == first


def test_where_perfci_has_no_pip_the_environment_has_one(
    tmp_path: Path, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installing, "_has_pip", lambda: False)
    asked = _asked(tmp_path, torch="2.12.0")
    with installed(asked, config, whose="its environment") as made:
        assert dict(made.packages)["torch"] == "2.12.0"
        assert _run(made, "import pip") == ""


def test_numpy_is_added_where_nothing_brings_it(
    tmp_path: Path, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = _asked(tmp_path, torch="2.12.0")
    bare = {"torch/__init__.py": "", "torch/version.py": "cuda = '13.0'\n"}
    wheels.write_wheel(tmp_path / "wheels", "torch", "2.12.0", bare)
    wheels.write_wheel(tmp_path / "wheels", "numpy", "2.0", {"numpy.py": ""})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    with installed(asked, config, whose="its environment") as made:
        assert dict(made.packages) == {"torch": "2.12.0", "numpy": "2.0"}
        assert made.cuda == "13.0"


def test_what_a_killed_maker_left_is_made_anew(tmp_path: Path, config: Config) -> None:
    asked = _asked(tmp_path, torch="2.12.0", pace="1.0")
    with installed(asked, config, whose="its environment") as made:
        home = made.python.parents[2]
    (home / "environment.json").unlink()
    (home / "venv/bin/python").unlink()
    with installed(asked, config, whose="its environment") as made:
        assert _run(made, "import pace; print(pace.VERSION)") == "1"


def test_two_who_want_the_same_make_it_once(tmp_path: Path, config: Config) -> None:
    asked = _asked(tmp_path, torch="2.12.0", pace="1.0")

    def use() -> int:
        with installed(asked, config, whose="its environment") as made:
            return (made.python.parents[2] / "venv").stat().st_ino

    with ThreadPoolExecutor(2) as pool:
        one, other = (pool.submit(use) for _ in range(2))
    assert one.result() == other.result()
    (log,) = (tmp_path / "cache/environments").glob("*/pip.log")
    assert len(list(log.parent.parent.glob("*/environment.json"))) == 1


def test_those_used_longest_ago_are_removed_unless_they_are_in_use(
    tmp_path: Path, config: Config
) -> None:
    home = tmp_path / "cache/environments"
    with ExitStack() as stack:
        oldest = _asked(tmp_path, torch="2.12.0")
        used = stack.enter_context(installed(oldest, config, whose="its environment"))
        os.utime(used.python.parents[2] / "environment.json", (1, 1))
        for number in range(KEPT + 1):
            (home / f"old{number}").mkdir()
            record = home / f"old{number}" / "environment.json"
            record.write_text(json.dumps({}))
            os.utime(record, (100 + number, 100 + number))
        (home / "never-whole").mkdir()
        newest = _asked(tmp_path, torch="2.12.0", pace="1.0")
        made = stack.enter_context(installed(newest, config, whose="its environment"))
        left = {each.name for each in home.iterdir() if each.is_dir()}
        kept = {f"old{number}" for number in range(2, KEPT + 1)}
        assert left == {used.digest, made.digest, *kept}
        assert used.python.exists()


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        (
            {"torch": "2.12.0", "pace": "9.9"},
            "the head's environment cannot be made from requirements.txt: ERROR: Could not find a",
        ),
        ({"pace": "1.0"}, "the head's environment has no torch, without which nothing can"),
    ],
)
def test_what_cannot_be_made_is_one_line(
    tmp_path: Path, config: Config, versions: dict[str, str], message: str
) -> None:
    asked = _asked(tmp_path, **versions)
    with (
        pytest.raises(BuildEnvironmentError) as caught,
        installed(asked, config, whose="the head's environment"),
    ):
        pass
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_one_that_takes_too_long_is_cut_short(tmp_path: Path) -> None:
    config = load_config(
        tmp_path, environment={}, cache=str(tmp_path / "cache"), build_timeout_s=0.001
    )
    asked = _asked(tmp_path, torch="2.12.0")
    with (
        pytest.raises(BuildEnvironmentError, match="cut short after"),
        installed(asked, config, whose="its environment"),
    ):
        pass


def test_a_change_names_versions_torch_first() -> None:
    before = {"numpy": "2.0", "torch": "2.12", "gone": "1.0"}
    after = {"numpy": "2.1", "torch": "2.13", "triton": "3.6"}
    assert describe_change(before, after) == (
        "torch 2.12 → 2.13, triton none → 3.6, gone 1.0 → none, numpy 2.0 → 2.1"
    )
    assert describe_change(before, before).startswith("other requirements")
    many = {f"p{number:02}": "1" for number in range(20)}
    assert describe_change({}, many).endswith("and 12 more")


def test_names_and_versions_from_outside_are_one_line() -> None:
    said = describe_change({}, {"pace\x1b[31m": "1\n2"})
    assert said.isprintable()


def test_what_is_here_is_known_too() -> None:
    assert "torch" in packages_of(None)
