"""What a variant declares of itself, read from its first comment lines or its table.

A line is TOML behind ``perfci:``, as in ``// perfci: flags = ["-fopenmp"]``.
"""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfci.errors import ConfigurationError
from perfci.suggest import did_you_mean

DTYPES = ("float32", "float64", "float16", "bfloat16")
DEVICE_KINDS = ("cpu", "cuda")
_LINE = re.compile(r"^\s*(?://|#|\*|/\*)\s*perfci:\s*(.*?)\s*(?:\*/)?\s*$")
_COMMENT = re.compile(r"^\s*(?://|#(?!include|define|if|pragma)|\*|/\*|$|\"\"\")")
_DEVICES_BY_SUFFIX = {".cpp": ("cpu",), ".cu": ("cuda",), ".py": ("cpu", "cuda")}
_ARCHITECTURE = re.compile(r"sm_\d{2,3}[af]?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """How far a result may be from the float64 judge, in units of the yardstick's own error."""

    max_ratio: float = 4.0
    rms_ratio: float = 3.0

    def tightened(self, other: "Tolerance") -> "Tolerance":
        """The tighter of two in each ratio."""
        return Tolerance(
            max_ratio=min(self.max_ratio, other.max_ratio),
            rms_ratio=min(self.rms_ratio, other.rms_ratio),
        )


GENERAL_RULE = Tolerance()
"""What holds where nothing tighter is declared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """What a variant says of itself; docs/adding-a-kernel.md has the meaning of each key."""

    devices: tuple[str, ...]
    dtypes: tuple[str, ...] = ("float32",)
    flags: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    maxima: tuple[tuple[str, float], ...] = ()
    architecture: str | None = None
    compiles: bool = False
    peer: bool = False
    tf32: bool = False
    faults: bool = False
    nondeterministic: bool = False
    tolerance: Tolerance = GENERAL_RULE


def declared_in_source(path: Path) -> Declaration:
    """The declaration in the comment lines with which a source begins."""
    lines = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        match = _LINE.match(line)
        if match:
            lines.append(match[1])
        elif not _COMMENT.match(line):
            break
    try:
        table = tomllib.loads("\n".join(lines))
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(
            f"{path}: its 'perfci:' lines are not valid TOML: {error}"
        ) from None
    return _declaration(table, _DEVICES_BY_SUFFIX[path.suffix], str(path))


def declared_in_table(table: Any, where: str) -> tuple[str, Declaration]:
    """The function ``package.module:name`` of a table of variants.toml and its declaration."""
    function = table.get("function") if isinstance(table, Mapping) else None
    if not isinstance(function, str) or not re.fullmatch(r"[\w.]+:\w+", function):
        raise ConfigurationError(f'{where}: needs function = "package.module:name"')
    rest = {key: value for key, value in table.items() if key != "function"}
    return function, _declaration(rest, ("cpu", "cuda"), where)


def _declaration(table: Mapping[str, Any], devices: tuple[str, ...], where: str) -> Declaration:
    known: dict[str, Callable[[Any, str], object]] = {
        "flags": _strings,
        "libraries": _strings,
        "devices": lambda value, where: chosen(value, DEVICE_KINDS, where),
        "dtypes": lambda value, where: chosen(value, DTYPES, where),
        "max": _maxima,
        "architecture": _architecture,
        "compiles": _boolean,
        "peer": _boolean,
        "tf32": _boolean,
        "faults": _boolean,
        "nondeterministic": _boolean,
        "tolerance": declared_tolerance,
    }
    values: dict[str, Any] = {"devices": devices}
    for key, value in table.items():
        if key not in known:
            raise ConfigurationError(f"{where}: unknown key '{key}' {did_you_mean(key, known)}")
        values["maxima" if key == "max" else key] = known[key](value, f"{where}: {key}")
    if values.get("tf32") and not values.get("peer"):
        raise ConfigurationError(
            f"{where}: tf32 is for library peers (peer = true); a kernel gets none"
        )
    return Declaration(**values)


def declared_tolerance(table: Any, where: str) -> Tolerance:
    """A tolerance that is tighter than the general rule; ConfigurationError where it is none."""
    known = ("max_ratio", "rms_ratio")
    if not isinstance(table, Mapping):
        raise ConfigurationError(f"{where} must be a table, as in {{ rms_ratio = 2.0 }}")
    for key in table:
        if key not in known:
            raise ConfigurationError(f"{where}: unknown key '{key}' {did_you_mean(key, known)}")
    declared = Tolerance(**table)
    for key in known:
        value, limit = getattr(declared, key), getattr(GENERAL_RULE, key)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 < value <= limit:
            raise ConfigurationError(
                f"{where}: {key} = {value!r} must lie in 0–{limit:g}: a tighter bound than the "
                "general rule may be declared, never a looser one"
            )
    return declared


def chosen(value: Any, known: Sequence[str], where: str) -> tuple[str, ...]:
    """A list of at least one of the known names; ConfigurationError where it is none."""
    names = _strings(value, where)
    if not names:
        raise ConfigurationError(f"{where} is empty; leave it out or name at least one")
    for name in names:
        if name not in known:
            raise ConfigurationError(f"{where}: unknown '{name}' (known: {', '.join(known)})")
    return names


def _strings(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ConfigurationError(f"{where} must be a list of strings")
    return tuple(value)


def _maxima(value: Any, where: str) -> tuple[tuple[str, float], ...]:
    if not isinstance(value, dict) or not all(
        isinstance(each, int | float) and not isinstance(each, bool) for each in value.values()
    ):
        raise ConfigurationError(f"{where} must be a table of numbers, as in {{ width = 4096 }}")
    return tuple(value.items())


def _architecture(value: Any, where: str) -> str:
    if not isinstance(value, str) or not _ARCHITECTURE.fullmatch(value):
        raise ConfigurationError(f'{where} must be a string such as "sm_90a"')
    return value


def _boolean(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigurationError(f"{where} must be true or false")
    return value
