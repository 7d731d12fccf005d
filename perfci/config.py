"""Configuration: defaults < [tool.perfci] in pyproject.toml < PERFCI_* < flags.

The only module that reads the environment.
"""

import math
import os
import re
import shutil
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from perfci.ci.settings import CiSettings, read_ci_settings
from perfci.errors import ConfigurationError
from perfci.history.text import one_line
from perfci.policy import Accepted, read_accepted, read_thresholds
from perfci.suggest import did_you_mean

_USUAL_WIDTH = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What an invocation goes by. Paths are absolute."""

    root: Path
    kernels: Path
    store: str
    cache: Path
    environment: tuple[str, ...] = ()
    testbed: str | None = None
    passes: int = 5
    precision: float = 0.005
    threshold: float = 0.05
    thresholds: tuple[tuple[str, float], ...] = ()
    accepted: tuple[Accepted, ...] = ()
    timeout_s: float = 60.0
    build_timeout_s: float = 900.0
    cell_budget_s: float = 0.5
    memory_limit_gib: float | None = None
    architectures: tuple[str, ...] = ()
    repository_url: str | None = None
    side_by_side: bool = False
    anchors: bool = True
    main_branch: str = "main"
    trigger: str = "local"
    ci: CiSettings = field(default_factory=CiSettings)
    cxx: str = "g++"
    nvcc: str = "nvcc"


_ARCHITECTURE = re.compile(r"sm_\d{2,3}[af]?")
_TESTBED = re.compile(r"\w[\w .:+-]{0,99}")
_EMBEDDED = "sqlite:///"
_SCHEMES = ("sqlite:", "file:")
_PREFIX = "PERFCI_"
_PRIVATE_NAME = re.compile(
    "^(ACTIONS|CI|GH|GITHUB|GITLAB|INPUT|RUNNER|STATE)(_|$)|^(GIT_ASKPASS|GIT_CONFIG.*|KUBECONFIG)$"
    "|^(PERFCI_STORE|SSH_AGENT_PID|SSH_ASKPASS|SSH_AUTH_SOCK|BASH_ENV|ENV)$"
    "|TOKEN|SECRET|PASSW|CREDENTIAL|AUTHORI[SZ]|APIKEY|(API|ACCESS|PRIVATE|SIGNING|SSH)_?KEY"
    "|(^|_)(AUTH|PASS|PAT)(_|$)",
    re.IGNORECASE,
)
_WITH_PASSWORD = re.compile(r"://[^/\s@]+@")
_SETTABLE = {each.name for each in fields(Config)} - {"root"}


def load_config(
    start: Path | None = None,
    *,
    top: Path | None = None,
    environment: Mapping[str, str] | None = None,
    **flags: Any,
) -> Config:
    """The configuration for a folder (default: the current one) and its parents, up to ``top``.

    The project's root is the nearest folder upwards that has [tool.perfci] in its pyproject.toml,
    else the nearest git checkout, else the folder itself. Relative paths are taken from the root,
    those of flags from the folder. Flags that are None are not given.
    """
    variables = os.environ if environment is None else environment
    start = (start or _current_folder()).resolve()
    root, table = _project(start, top)
    given = {name: value for name, value in flags.items() if value is not None}
    return _layered(
        root,
        _from_table(table, root, f"{root / 'pyproject.toml'}: [tool.perfci]"),
        _from_environment(variables, root),
        _from_table(given, start, "command line"),
        variables=variables,
    )


def config_of_text(
    root: Path, text: str, where: str, *, environment: Mapping[str, str] | None = None
) -> Config:
    """The configuration that another pyproject.toml, such as another commit's, gives at a root."""
    variables = os.environ if environment is None else environment
    return _layered(
        root,
        _from_table(_table_in(text, where) or {}, root, f"{where}: [tool.perfci]"),
        _from_environment(variables, root),
        variables=variables,
    )


def _layered(root: Path, *layers: Mapping[str, Any], variables: Mapping[str, str]) -> Config:
    """The defaults with layers of values on top."""
    values: dict[str, Any] = {}
    for layer in layers:
        values |= layer
    config = Config(
        root=root,
        kernels=root / "kernels",
        store=_embedded(root / ".perfci" / "history.db"),
        cache=values.get("cache") or _cache_folder(variables),
        cxx=variables.get("CXX") or "g++",
    )
    return replace(config, **values)


def beside_store(config: Config) -> Path:
    """The folder for what is kept beside the store: that of its file, the project's without one."""
    path = config.store.removeprefix(_EMBEDDED)
    return config.root / ".perfci" if path == config.store else Path(unquote(path)).parent


def child_environment(cache: Path) -> dict[str, str]:
    """Variables for the processes that run kernels: compilers' caches in perfci's own folder."""
    return {
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "TRITON_CACHE_DIR": str(cache / "triton"),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        # Whether there is a GPU is asked of NVML: CUDA, once started, does not survive a fork.
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
    }


def inherited_environment(**extra: str) -> dict[str, str]:
    """The variables of this process with more added, for a program that it starts."""
    return {**os.environ, **extra}


def measuring_environment(**extra: str) -> dict[str, str]:
    """The variables of this process for code under test, with more added.

    Left out is what tells or does more than measuring takes: tokens and passwords, by the name of
    the variable or by a URL that holds one, and everything of the pipeline's, whose files would
    let that code speak for it.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not _PRIVATE_NAME.search(name) and not _WITH_PASSWORD.search(value)
    }
    return {**kept, **extra}


def visible_devices() -> str | None:
    """What CUDA_VISIBLE_DEVICES says, which CUDA goes by and NVML does not; None where unset."""
    value = os.environ.get("CUDA_VISIBLE_DEVICES")
    return None if value is None else one_line(value, limit=200)


def terminal_width() -> int:
    """How wide a list may be: as the terminal is, or ``COLUMNS`` says, and at least 80."""
    return max(_USUAL_WIDTH, shutil.get_terminal_size((_USUAL_WIDTH, 0)).columns)


def apply_environment(variables: Mapping[str, str]) -> None:
    """Set variables for this process and the ones it starts."""
    os.environ.update(variables)


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except OSError:
        raise ConfigurationError("the current folder is gone: go to one that is there") from None


def _project(start: Path, top: Path | None) -> tuple[Path, dict[str, Any]]:
    candidates = [start, *start.parents]
    if top is not None:
        candidates = [each for each in candidates if each.is_relative_to(top.resolve())]
    for folder in candidates:
        table = _perfci_table(folder / "pyproject.toml")
        if table is not None:
            return folder, table
    for folder in candidates:
        if (folder / ".git").exists():
            return folder, {}
    return start, {}


def _perfci_table(pyproject: Path) -> dict[str, Any] | None:
    if not pyproject.is_file():
        return None
    try:
        text = pyproject.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{pyproject}: not valid TOML: {error}") from None
    return _table_in(text, str(pyproject))


def _table_in(text: str, where: str) -> dict[str, Any] | None:
    """The table [tool.perfci] of a pyproject.toml; None where it has none."""
    try:
        tool = tomllib.loads(text).get("tool", {})
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{where}: not valid TOML: {error}") from None
    table = tool.get("perfci")
    if table is not None and not isinstance(table, dict):
        raise ConfigurationError(f"{where}: tool.perfci must be a table")
    return table


def _from_environment(variables: Mapping[str, str], folder: Path) -> dict[str, Any]:
    """The values that variables give. Raises ConfigurationError, which names the variable."""
    known = {name.upper(): name for name in _SETTABLE}
    given: dict[str, Any] = {}
    for variable, text in variables.items():
        if not variable.startswith(_PREFIX):
            continue
        name = variable.removeprefix(_PREFIX)
        if name not in known:
            hint = did_you_mean(name, known, prefix=_PREFIX)
            raise ConfigurationError(f"{variable}: unknown {hint}")
        key = known[name]
        if text:
            where = variable if key in _TABLES else f"{variable}={one_line(text, limit=80)}:"
            given[key] = _read(key, _parsed(key, text), folder, where)
    return given


def _parsed(key: str, text: str) -> Any:
    """A variable's text as the kind of value that its key has; the text where it is none."""
    kind = _KINDS.get(key)
    if kind in (_architectures, _files):
        return [each.strip() for each in text.split(",")]
    if kind is _flag:
        return {"1": True, "true": True, "0": False, "false": False}.get(text.lower(), text)
    if kind in (_positive, _count, _share):
        with suppress(ValueError):
            return int(text) if kind is _count else float(text)
    return text


def _from_table(table: Mapping[str, Any], folder: Path, where: str) -> dict[str, Any]:
    """The values of a table. Raises ConfigurationError, which names the key."""
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in _SETTABLE:
            raise ConfigurationError(f"{where}: unknown key '{key}' {did_you_mean(key, _SETTABLE)}")
        shown = key if key in _TABLES else f"{key} = {_shown(value)}"
        values[key] = _read(key, value, folder, f"{where}: {shown}")
    return values


def _shown(value: Any) -> str:
    return one_line(repr(str(value) if isinstance(value, Path) else value), limit=80)


def _read(key: str, value: Any, folder: Path, where: str) -> Any:
    """A value of the kind that its key has, a relative path taken from a folder.

    Raises ConfigurationError, which begins with ``where``.
    """
    kind: Callable[[Any, str], Any] = _KINDS.get(key, _text)
    known = kind(value, where)
    if key in ("kernels", "cache"):
        return _located(known, folder, where)
    return _store_url(known, folder, where) if key == "store" else known


def _text(value: Any, where: str) -> str | Path:
    if not isinstance(value, str | Path):
        raise ConfigurationError(f"{where} must be a string")
    return value


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigurationError(f"{where} must be a number")
    return value


def _positive(value: Any, where: str) -> float:
    if not 0 < _number(value, where) < math.inf:
        raise ConfigurationError(f"{where} must be above 0 and finite")
    return float(value)


def _count(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigurationError(f"{where} must be a whole number above 0")
    return value


def _share(value: Any, where: str) -> float:
    if not 0 < _number(value, where) < 1:
        raise ConfigurationError(f"{where} must lie between 0 and 1")
    return float(value)


def _flag(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigurationError(f"{where} must be true or false")
    return value


def _testbed(value: Any, where: str) -> str:
    if not _TESTBED.fullmatch(str(_text(value, where))):
        raise ConfigurationError(f"{where} must be letters, digits, spaces and .:+-_, 100 at most")
    return str(value)


def _architectures(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ConfigurationError(f'{where} must be a list such as ["sm_80", "sm_90"]')
    for each in value:
        if not _ARCHITECTURE.fullmatch(str(each)):
            raise ConfigurationError(f"{where} {_shown(each)} is no architecture, as sm_90 is")
    return tuple(value)


def _files(value: Any, where: str) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if isinstance(names, list) and all(_is_inside(each) for each in names):
        return tuple(names)
    raise ConfigurationError(f'{where} must name files of the project, as "requirements.txt" does')


def _is_inside(name: object) -> bool:
    if not isinstance(name, str) or not name:
        return False
    return not (Path(name).is_absolute() or ".." in Path(name).parts)


_KINDS: dict[str, Callable[[Any, str], Any]] = {
    "accepted": read_accepted,
    "anchors": _flag,
    "architectures": _architectures,
    "build_timeout_s": _positive,
    "cell_budget_s": _positive,
    "ci": read_ci_settings,
    "environment": _files,
    "memory_limit_gib": _positive,
    "passes": _count,
    "precision": _share,
    "side_by_side": _flag,
    "testbed": _testbed,
    "threshold": _share,
    "thresholds": read_thresholds,
    "timeout_s": _positive,
}
"""Key → what it must be; the others are text."""

_TABLES = {"accepted", "ci", "thresholds"}
"""Keys whose errors name what is wrong in them rather than show all of it."""


def _located(path: str | Path, folder: Path, where: str) -> Path:
    """A path made absolute, from a folder; ConfigurationError where no file can have it."""
    try:
        located = (folder / Path(path).expanduser()).resolve()
        located.exists()
    except (OSError, RuntimeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigurationError(f"{where} is no usable path: {reason}") from None
    return located


def _store_url(store: str | Path, folder: Path, where: str) -> str:
    """A URL of a server as it is; a path, by itself or in a URL, is the embedded store's file."""
    given = str(store)
    path = given.removeprefix(_EMBEDDED)
    if "://" in path or path.startswith(_SCHEMES) or path in ("", ":memory:"):
        return given
    located = _located(path, folder, where)
    return f"{_EMBEDDED}{located}" if given != path else _embedded(located)


def _embedded(path: Path) -> str:
    """The URL of the embedded store's file; what a URL would read otherwise is escaped in it."""
    return f"{_EMBEDDED}{str(path).replace('%', '%25').replace('?', '%3F')}"


def _cache_folder(variables: Mapping[str, str]) -> Path:
    """Where caches are by default. Raises ConfigurationError where nobody has a home."""
    folder = variables.get("XDG_CACHE_HOME")
    try:
        return Path(folder or Path.home() / ".cache").absolute() / "perfci"
    except RuntimeError:
        raise ConfigurationError(
            "no home folder to keep caches in: set PERFCI_CACHE to a folder"
        ) from None
