"""What a checkout asks of its environment: requirement files, or a pyproject.toml's dependencies.

A digest of all that decides what will be installed tells two of them apart: the lines (comments
aside), those of files that they include, and the content of what they take from the checkout.
"""

import hashlib
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfci.binary.canonical import digest
from perfci.errors import ConfigurationError
from perfci.history.errors import CommitError
from perfci.history.git import run_git

_INCLUDES = re.compile(r"(?:-r|--requirement|-c|--constraint)[\s=]*(?P<file>\S+)")
_EDITABLE = re.compile(r"(?:-e|--editable)\b")
_FOLDERS = ("-f", "--find-links")
_ARCHIVES = (".whl", ".zip", ".tar.gz")
_COMMENT = re.compile(r"(^|\s)#.*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """What is to be installed, from ``folder``; equal digests mean equal environments.

    ``files`` are those that the setting names, ``dependencies`` what a pyproject.toml among them
    depends on.
    """

    folder: Path
    files: tuple[str, ...]
    dependencies: tuple[str, ...]
    digest: str

    @property
    def words(self) -> list[str]:
        """What pip is told to install, in the folder."""
        listed = [name for name in self.files if not _is_project(name)]
        named = ["--", *self.dependencies] if self.dependencies else []
        return [*(word for name in listed for word in ("-r", name)), *named]

    @property
    def name(self) -> str:
        """How the files are called in messages."""
        return ", ".join(self.files)


def read_requirements(folder: Path, files: Sequence[str]) -> Requirements | None:
    """What the files of a checkout ask for; None where none are named.

    Raises ConfigurationError where one is not there, or does not say what is to be installed.
    """
    if not files:
        return None
    dependencies: list[str] = []
    parts: list[object] = []
    for name in files:
        if _is_project(name):
            dependencies += _dependencies(folder / name)
        else:
            parts += _decisive(folder, folder / name, {})
    return Requirements(
        folder=folder,
        files=tuple(files),
        dependencies=tuple(dependencies),
        digest=digest(parts, dependencies),
    )


def _is_project(name: str) -> bool:
    return Path(name).name == "pyproject.toml"


def _dependencies(path: Path) -> list[str]:
    try:
        project = tomllib.loads(_read(path)).get("project", {})
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path}: not valid TOML: {error}") from None
    listed = project.get("dependencies")
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise ConfigurationError(
            f"{path}: lists no dependencies under [project]; "
            "let [tool.perfci] environment name a requirements file"
        )
    return listed


def _decisive(folder: Path, path: Path, seen: dict[Path, None]) -> Iterator[object]:
    """All that a requirements file says, with what lies behind the paths in it."""
    if path in seen:
        return
    seen[path] = None
    for line in _lines(_read(path)):
        yield line
        if _EDITABLE.match(line):
            raise ConfigurationError(
                f"{path}: '{line}' would install a checkout that is gone when the environment is "
                "used again; write the path alone"
            )
        if (included := _INCLUDES.match(line)) and "://" not in line:
            yield from _decisive(folder, path.parent / included["file"], seen)
            continue
        words = re.split(r"[\s=]+", line)
        for before, word in zip(["", *words], words, strict=False):
            if before in _FOLDERS or _looks_like_a_path(word):
                yield from _contents(folder, path.parent, word)


def _lines(text: str) -> Iterator[str]:
    for line in text.replace("\\\n", " ").splitlines():
        if meant := _COMMENT.sub("", line).strip():
            yield meant


def _looks_like_a_path(word: str) -> bool:
    return "/" in word or word.startswith(".") or word.endswith(_ARCHIVES)


def _contents(folder: Path, beside: Path, word: str) -> Iterator[tuple[str, str]]:
    """Names and digests of the files behind a path, which may be in either folder; URLs have none.

    Of a folder these are the files that git does not ignore.
    """
    path = word.partition("[")[0].removeprefix("file://")
    places = [each / path for each in (folder, beside)]
    place = next((each for each in places if each.exists()), None)
    if place is None or place == place.parent:
        return
    for each in sorted([place] if place.is_file() else files_in(place)):
        content = str(each.readlink()) if each.is_symlink() else _digest(each)
        yield each.name if each == place else str(each.relative_to(place)), content


def files_in(place: Path) -> list[Path]:
    """The files and links of a folder that git does not ignore; all where there is no git."""
    try:
        listed = run_git(place, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        found = [place / name for name in listed.split("\0") if name]
    except CommitError:
        found = [*place.rglob("*")]
    return [each for each in found if each.is_file() or each.is_symlink()]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no UTF-8 text"
        raise ConfigurationError(
            f"{path}: cannot be read ({reason}); [tool.perfci] environment names it"
        ) from None
