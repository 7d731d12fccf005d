"""Configuration: defaults < [tool.perfci] in pyproject.toml < PERFCI_* < flags.

The only module that reads the environment.
"""

import math
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from perfci.errors import ConfigurationError
from perfci.suggest import did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What an invocation goes by. Paths are absolute."""

    root: Path
    kernels: Path
    store: str
    cache: Path
    testbed: str | None = None
    passes: int = 5
    threshold: float = 0.05
    timeout_s: float = 60.0
    build_timeout_s: float = 900.0
    cell_budget_s: float = 0.5
    memory_limit_gib: float | None = None
    architectures: tuple[str, ...] = ()
    repository_url: str | None = None
    cxx: str = "g++"
    nvcc: str = "nvcc"


_ARCHITECTURE = re.compile(r"sm_\d{2,3}[af]?")
_TESTBED = re.compile(r"\w[\w .:+-]{0,99}")
_SETTABLE = {each.name for each in fields(Config)} - {"root"}
_POSITIVE = ("passes", "timeout_s", "build_timeout_s", "cell_budget_s", "memory_limit_gib")


def load_config(
    start: Path | None = None, *, environment: Mapping[str, str] | None = None, **flags: Any
) -> Config:
    """The configuration for a folder (default: the current one) and its parents.

    The project's root is the nearest folder upwards that has [tool.perfci] in its pyproject.toml,
    else the nearest git checkout, else the folder itself. Flags that are None are not given.
    """
    variables = os.environ if environment is None else environment
    start = (start or Path.cwd()).resolve()
    root, table = _project(start)
    values = _checked(table, f"{root / 'pyproject.toml'}: [tool.perfci]")
    values |= _checked(_from_environment(variables), "environment")
    values |= _checked({k: v for k, v in flags.items() if v is not None}, "command line")
    config = Config(
        root=root,
        kernels=root / "kernels",
        store=f"sqlite:///{root / '.perfci' / 'history.db'}",
        cache=Path(variables.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "perfci",
        cxx=variables.get("CXX") or "g++",
    )
    for key in ("kernels", "cache"):
        if key in values:
            values[key] = (root / Path(values[key]).expanduser()).resolve()
    if "store" in values:
        values["store"] = _store_url(values["store"], root)
    return replace(config, **values)


def child_environment(cache: Path) -> dict[str, str]:
    """Variables for the processes that run kernels: compilers' caches in perfci's own folder."""
    return {
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "TRITON_CACHE_DIR": str(cache / "triton"),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }


def inherited_environment(**extra: str) -> dict[str, str]:
    """The variables of this process with more added, for a program that it starts."""
    return {**os.environ, **extra}


def apply_environment(variables: Mapping[str, str]) -> None:
    """Set variables for this process and the ones it starts."""
    os.environ.update(variables)


def _project(start: Path) -> tuple[Path, dict[str, Any]]:
    candidates = (start, *start.parents)
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
        tool = tomllib.loads(pyproject.read_text(encoding="utf-8")).get("tool", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{pyproject}: not valid TOML: {error}") from None
    table = tool.get("perfci")
    if table is not None and not isinstance(table, dict):
        raise ConfigurationError(f"{pyproject}: tool.perfci must be a table")
    return table


def _from_environment(variables: Mapping[str, str]) -> dict[str, Any]:
    known = {f"PERFCI_{name.upper()}": name for name in _SETTABLE}
    given: dict[str, Any] = {}
    for variable, text in variables.items():
        if variable in known and text:
            given[known[variable]] = _parsed(known[variable], text, variable)
    return given


def _parsed(name: str, text: str, variable: str) -> Any:
    if name == "architectures":
        return [each.strip() for each in text.split(",")]
    if name == "passes" or name in ("threshold", *_POSITIVE):
        try:
            return int(text) if name == "passes" else float(text)
        except ValueError:
            raise ConfigurationError(f"{variable}={text}: must be a number") from None
    return text


def _checked(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    values = dict(table)
    for key, value in table.items():
        if key not in _SETTABLE:
            raise ConfigurationError(f"{where}: unknown key '{key}' {did_you_mean(key, _SETTABLE)}")
        numeric = key == "threshold" or key in _POSITIVE
        if numeric and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise ConfigurationError(f"{where}: {key} = {value!r} must be a number")
        if key in _POSITIVE and not 0 < value < math.inf:
            raise ConfigurationError(f"{where}: {key} = {value!r} must be above 0 and finite")
        if key == "passes" and not isinstance(value, int):
            raise ConfigurationError(f"{where}: passes = {value!r} must be a whole number")
        if key == "threshold" and not 0 < value < 1:
            raise ConfigurationError(f"{where}: threshold = {value!r} must lie between 0 and 1")
        if key == "architectures":
            values[key] = _architectures(value, where)
        elif not numeric and not isinstance(value, str | Path):
            raise ConfigurationError(f"{where}: {key} = {value!r} must be a string")
    if not _TESTBED.fullmatch(str(values.get("testbed", "x"))):
        raise ConfigurationError(
            f"{where}: testbed = {values['testbed']!r} must be letters, digits, spaces and .:+-_, "
            "100 at most"
        )
    return values


def _architectures(value: Any, where: str) -> tuple[str, ...]:
    if isinstance(value, list) and all(_ARCHITECTURE.fullmatch(str(each)) for each in value):
        return tuple(value)
    raise ConfigurationError(
        f'{where}: architectures = {value!r} must be a list such as ["sm_80", "sm_90"]'
    )


def _store_url(store: str | Path, root: Path) -> str:
    """A URL as it is; a plain path becomes the embedded store in that file."""
    text = str(store)
    if "://" in text:
        return text
    return f"sqlite:///{(root / Path(text).expanduser()).resolve()}"
