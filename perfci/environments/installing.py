"""Environments made by pip from what checkouts ask for, kept by the digest of all that decides.

One lock lets one process make or remove environments at a time; each environment that is in use is
locked by its users besides, and is not removed. An environment is made where it stays, since it
does not survive being moved; its record is written last, and what has none is made anew.
"""

import asyncio
import fcntl
import importlib.metadata
import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TextIO

from perfci.binary.canonical import digest
from perfci.config import Config
from perfci.environments.installation import Installation
from perfci.environments.requirements import Requirements
from perfci.errors import BuildEnvironmentError
from perfci.history.text import one_line
from perfci.toolchain import cuda_version_of
from perfci.tools.watcher import watch

FORM = 1
"""Counts how environments are made."""

KEPT = 4
"""How many environments stay, those last used, beside the ones that are in use."""

_RECORD, _LOCK, _LOG = "environment.json", "lock", "pip.log"
_END_OF_BUILD = "[end of output]"
_PYTHON = Path("venv", "bin", "python")
_SURVEY = """\
import importlib.metadata, importlib.util, json, sys
packages = {}
for each in importlib.metadata.distributions():
    packages.setdefault(each.name.lower(), each.version)
found = {name: importlib.util.find_spec(name) for name in sys.argv[1:]}
places = {name: each.origin for name, each in found.items() if each}
print(json.dumps({"packages": packages, "places": places}))
"""


@contextmanager
def installed(requirements: Requirements, config: Config, *, whose: str) -> Iterator[Installation]:
    """The environment that requirements ask for, made if it is not there, kept while inside.

    ``whose`` it is stands in errors. Raises BuildEnvironmentError where it cannot be made.
    """
    key = digest(FORM, sys.version, sys.base_prefix, requirements.digest)
    home = config.cache / "environments"
    folder = home / key
    with ExitStack() as stack:
        try:
            home.mkdir(parents=True, exist_ok=True)
            with (home / _LOCK).open("w") as turn:
                _wait_for(turn, home)
                folder.mkdir(exist_ok=True)
                use = stack.enter_context((folder / _LOCK).open("w"))
                fcntl.flock(use, fcntl.LOCK_SH)
                if not (folder / _RECORD).is_file():
                    making = _Making(
                        folder=folder, requirements=requirements, config=config, whose=whose
                    )
                    making.make()
                    _prune(home)
                (folder / _RECORD).touch()
            installation = _read(folder, key)
        except OSError as error:
            raise BuildEnvironmentError(
                f"{folder}: {whose} cannot be kept there ({error.strerror}); "
                "set PERFCI_CACHE to a folder with room"
            ) from None
        yield installation


def _wait_for(turn: TextIO, home: Path) -> None:
    try:
        fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"waiting for another environment to be made in {home}", file=sys.stderr)
        fcntl.flock(turn, fcntl.LOCK_EX)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Making:
    """An environment while it is made."""

    folder: Path
    requirements: Requirements
    config: Config
    whose: str

    @property
    def python(self) -> Path:
        return self.folder / _PYTHON

    def make(self) -> None:
        """Make it anew. Raises BuildEnvironmentError."""
        shutil.rmtree(self.folder / "venv", ignore_errors=True)
        without = ["--without-pip"] if _has_pip() else []
        self._run([sys.executable, "-I", "-m", "venv", *without, str(self.folder / "venv")])
        self._install(self.requirements.words)
        found = self._survey()
        if "torch" not in found["places"]:
            raise BuildEnvironmentError(
                f"{self.whose} has no torch, without which nothing can be measured: "
                f"name it in {self.requirements.name}"
            )
        if "numpy" not in found["places"]:
            self._install(["numpy"])  # for perfci's own workers; torch does without
            found = self._survey()
        (self.folder / _RECORD).write_text(json.dumps(found), encoding="utf-8")

    def _install(self, words: Sequence[str]) -> None:
        pip = [str(self.python), "-I", "-m", "pip"]
        if _has_pip():
            pip = [sys.executable, "-I", "-m", "pip", "--python", str(self.python)]
        self._run([*pip, "--no-input", "--disable-pip-version-check", "install", *words])

    def _survey(self) -> dict[str, Any]:
        printed = self._run([str(self.python), "-I", "-c", _SURVEY, "torch", "numpy"])
        found: dict[str, Any] = json.loads(printed.splitlines()[-1])
        return found

    def _run(self, command: list[str]) -> str:
        """Run a step in the checkout and return what it printed."""
        ended = asyncio.run(
            watch(
                command,
                log=self.folder / _LOG,
                folder=self.requirements.folder,
                limit_s=self.config.build_timeout_s,
                variables={"PYTHONPATH": ""},
            )
        )
        if ended.code != 0:
            raise BuildEnvironmentError(
                f"{self.whose} cannot be made from {self.requirements.name}: "
                f"{_find_complaint(ended.text, ended.code, self.config)} (all of it: {ended.log})"
            )
        return ended.text


def _has_pip() -> bool:
    """Whether there is a pip here, which then makes environments without one of their own."""
    try:
        importlib.metadata.distribution("pip")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _find_complaint(text: str, code: int | None, config: Config) -> str:
    """The line that says what is wrong: of a package's build the last, of pip itself the first."""
    if code is None:
        return f"cut short after {config.build_timeout_s:g} s; build_timeout_s allows no more"
    lines = [line.strip() for line in text.splitlines()[1:] if line.strip()]
    built = [before for before, line in pairwise(lines) if line == _END_OF_BUILD]
    errors = [line for line in lines if line.lower().startswith("error:")]
    return one_line([*built, *errors, *lines[-1:], f"exit status {code}"][0], limit=300)


def _read(folder: Path, key: str) -> Installation:
    found: dict[str, Any] = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
    torch = Path(found["places"]["torch"]).parent
    return Installation(
        digest=key,
        python=folder / _PYTHON,
        packages=tuple(sorted(found["packages"].items())),
        torch=torch,
        cuda=cuda_version_of(torch),
    )


def _prune(home: Path) -> None:
    """Remove the environments that were used longest ago, and what was never whole."""
    folders = [each for each in home.iterdir() if each.is_dir()]
    records = [each / _RECORD for each in folders if (each / _RECORD).is_file()]
    records.sort(key=lambda each: each.stat().st_mtime, reverse=True)
    kept = {each.parent for each in records[:KEPT]}
    for folder in folders:
        if folder not in kept:
            with suppress(OSError), (folder / _LOCK).open("w") as use:
                fcntl.flock(use, fcntl.LOCK_EX | fcntl.LOCK_NB)  # its users hold it
                shutil.rmtree(folder, ignore_errors=True)
