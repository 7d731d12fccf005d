"""Records as plain JSON values and back, driven by the types of the records' own fields.

Reading trusts nothing: every key must be there and known, every value of its field's type and
within the field's rule. Writing is the same walk backwards, so a new field needs no code here.
"""

import difflib
import math
import re
from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeGuard, TypeVar, cast, get_args, get_origin, get_type_hints

from perfci.history.model import (
    Commit,
    Contract,
    Device,
    Environment,
    Launch,
    Measurement,
    Metric,
    Pass,
    Run,
)
from perfci.history.text import is_safe, one_line

Record = TypeVar("Record")
Reader = Callable[[object, str], Any]
Rule = Callable[[Any], str | None]

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|\+00:00)", re.ASCII)
_LARGEST_INTEGER = 2**63 - 1
_LONGEST_LATENCY_NS = 1e18


class PlainError(ValueError):
    """A plain value is no record; the message begins with where: ``measurements[3].status: …``."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path.lstrip('.')}: {problem}" if path else problem)


def plain(value: object) -> Any:
    """The record (or a part of one) as dicts, lists, text and numbers, in the order of fields."""
    if type(value) in (float, int, str, bool, NoneType):
        return value
    if isinstance(value, tuple):
        return list(value) if _are_floats(value) else [plain(each) for each in value]
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, datetime):
        return (value if value.tzinfo is None else value.astimezone(UTC)).isoformat()
    return value


def record(kind: type[Record], value: object) -> Record:
    """The record of that kind that a plain value stands for.

    Raises PlainError, which names the place and what is wrong with it.
    """
    return cast("Record", _reader(cast("Hashable", kind))(value, ""))


def checked(run: Run) -> Any:
    """The run as plain values, after making sure that the run can be read back from them.

    Raises PlainError where it cannot, as where a sample is NaN.
    """
    body = plain(run)
    record(Run, body)
    return body


@cache
def _reader(kind: Any) -> Reader:
    """What reads a plain value as a value of that type."""
    if is_dataclass(kind):
        return _record_reader(cast("type", kind))
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple:
        return _list_reader(arguments[0]) if arguments[-1] is ... else _fixed_reader(arguments)
    if origin is UnionType:
        return _optional_reader(next(each for each in arguments if each is not NoneType))
    if origin is Literal:
        return _choice_reader({each: each for each in arguments})
    if issubclass(kind, StrEnum):
        return _choice_reader({each.value: each for each in kind})
    return _SCALARS[kind]


def _record_reader(kind: type) -> Reader:
    hints = get_type_hints(kind)
    readers = {each.name: _reader(hints[each.name]) for each in fields(kind)}
    rules = {name: rule for (owner, name), rule in _RULES.items() if owner is kind}

    def read(value: object, path: str) -> object:
        if not isinstance(value, dict):
            raise _mismatch(value, "an object", path)
        _require_keys(value, readers, path)
        values = {name: reader(value[name], f"{path}.{name}") for name, reader in readers.items()}
        for name, rule in rules.items():
            if problem := rule(values[name]):
                raise PlainError(f"{path}.{name}", problem)
        try:
            return kind(**values)
        except ValueError as error:
            raise PlainError(path, str(error)) from None

    return read


def _require_keys(value: dict[str, object], known: Iterable[str], path: str) -> None:
    for key in value:
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise PlainError(path, f"unknown key {_shown(key)}{hint}")
    for name in known:
        if name not in value:
            raise PlainError(f"{path}.{name}", "missing")


def _list_reader(element: Any) -> Reader:
    reader = _reader(element)

    def read(value: object, path: str) -> object:
        if not isinstance(value, list):
            raise _mismatch(value, "a list", path)
        if element is float and _are_floats(value) and math.isfinite(sum(value)):
            return tuple(value)
        return tuple([reader(each, f"{path}[{index}]") for index, each in enumerate(value)])

    return read


def _are_floats(values: Collection[object]) -> TypeGuard[Collection[float]]:
    """Whether all are floats, as samples are: so many that walking over them one by one is slow."""
    return set(map(type, values)) == {float}


def _fixed_reader(elements: tuple[Any, ...]) -> Reader:
    readers = [_reader(each) for each in elements]

    def read(value: object, path: str) -> object:
        if not isinstance(value, list) or len(value) != len(readers):
            raise _mismatch(value, f"a list of {len(readers)}", path)
        pairs = zip(readers, value, strict=True)
        return tuple(
            [reader(each, f"{path}[{index}]") for index, (reader, each) in enumerate(pairs)]
        )

    return read


def _optional_reader(kind: Any) -> Reader:
    reader = _reader(kind)
    return lambda value, path: None if value is None else reader(value, path)


def _choice_reader(choices: dict[str, object]) -> Reader:
    def read(value: object, path: str) -> object:
        if not isinstance(value, str) or value not in choices:
            raise _mismatch(value, f"one of {', '.join(choices)}", path)
        return choices[value]

    return read


def _read_text(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise _mismatch(value, "text", path)
    if not is_safe(value):
        raise PlainError(path, f"{_shown(value)} holds control characters")
    return value


def _read_flag(value: object, path: str) -> bool:
    if not isinstance(value, bool):
        raise _mismatch(value, "true or false", path)
    return value


def _read_integer(value: object, path: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _mismatch(value, "a whole number", path)
    if abs(value) > _LARGEST_INTEGER:
        raise PlainError(path, "a whole number of more than 64 bits")
    return value


def _read_number(value: object, path: str) -> float:
    if type(value) is float and math.isfinite(value):
        return value
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _mismatch(value, "a number", path)
    if (isinstance(value, int) and abs(value) > _LARGEST_INTEGER) or not math.isfinite(value):
        raise _mismatch(value, "a finite number", path)
    return float(value)


def _read_time(value: object, path: str) -> datetime:
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        raise _mismatch(value, "a time in UTC such as 2026-01-31T12:00:00+00:00", path)
    try:
        return datetime.fromisoformat(value)
    except ValueError as error:
        raise PlainError(path, f"{_shown(value)}: {error}") from None


_SCALARS: dict[type, Reader] = {
    bool: _read_flag,
    str: _read_text,
    int: _read_integer,
    float: _read_number,
    datetime: _read_time,
}


def _mismatch(value: object, expected: str, path: str) -> PlainError:
    return PlainError(path, f"expected {expected}, found {_shown(value)}")


def _shown(value: object) -> str:
    """A value in an error message: short, on one line, printable, whatever it is."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, int) and abs(value) > _LARGEST_INTEGER:
        return "a whole number of more than 64 bits"
    return one_line(repr(value), limit=60)


def _matches(pattern: str, meaning: str) -> Rule:
    compiled = re.compile(pattern, re.ASCII)

    def rule(value: str | None) -> str | None:
        fits = value is None or compiled.fullmatch(value)
        return None if fits else f"{_shown(value)} is no {meaning}"

    return rule


def _at_least(least: int) -> Rule:
    return lambda value: None if value is None or value >= least else f"{value} is below {least}"


def _within(least: float, most: float) -> Rule:
    return lambda value: None if least <= value <= most else f"{value} is not {least}–{most}"


def _each(rule: Rule) -> Rule:
    return lambda values: next((found for each in values if (found := rule(each))), None)


def _unique(key: Callable[[Any], Hashable], noun: str) -> Rule:
    def rule(values: tuple[object, ...]) -> str | None:
        seen: dict[Hashable, int] = {}
        for index, each in enumerate(values):
            if (first := seen.setdefault(key(each), index)) != index:
                return f"entries {first} and {index} are the same {noun}"
        return None

    return rule


def _plausible_latencies(samples_ns: tuple[float, ...]) -> str | None:
    if samples_ns and min(samples_ns) > 0 and max(samples_ns) <= _LONGEST_LATENCY_NS:
        return None
    for index, each in enumerate(samples_ns):
        if not 0 < each <= _LONGEST_LATENCY_NS:
            return f"sample {index} is {each!r} ns; a latency is above 0 and at most 1e18 ns"
    return None


def _cell_key(measurement: Measurement) -> Hashable:
    contract = measurement.contract
    label = contract.label if contract else None
    return measurement.kernel, measurement.case, measurement.variant, label


_name = _matches(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", "name (letters, digits, '_', '.', '-')")
_sha = _matches(r"[0-9a-f]{7,64}", "commit (7 to 64 lower-case hexadecimal digits)")
_line = _matches(r"[^\n\t]{0,1000}", "single line of at most 1000 characters")
_nonempty = _matches(r"(?=.*\S)[^\n\t]{1,200}", "single line of 1 to 200 characters")

_RULES: dict[tuple[type, str], Rule] = {
    (Run, "run_id"): _matches(r"[A-Za-z0-9_-]{1,64}", "run id (letters, digits, '_', '-')"),
    (Run, "duration_s"): _at_least(0),
    (Run, "trigger"): _name,
    (Run, "attempt"): _at_least(1),
    (Run, "perfci_version"): _line,
    (Run, "pair"): _matches(r"[A-Za-z0-9_-]{0,64}", "pair's id (letters, digits, '_', '-')"),
    (Run, "measurements"): _unique(_cell_key, "cell"),
    (Commit, "sha"): _sha,
    (Commit, "parents"): _each(_sha),
    (Commit, "position"): _at_least(0),
    (Commit, "branch"): _line,
    (Commit, "subject"): _line,
    (Commit, "dirty"): _matches(r"[0-9a-f]{1,64}", "digest (1 to 64 hexadecimal digits)"),
    (Environment, "testbed"): _nonempty,
    (Environment, "host"): _line,
    (Device, "model"): _nonempty,
    (Device, "uuid"): _line,
    (Device, "sm_count"): _at_least(1),
    (Device, "core_count"): _at_least(1),
    (Device, "memory_bytes"): _at_least(0),
    (Contract, "timer"): _name,
    (Contract, "version"): _at_least(1),
    (Launch, "function"): _line,
    (Launch, "grid"): _each(_at_least(1)),
    (Launch, "block"): _each(_at_least(1)),
    (Launch, "registers"): _at_least(0),
    (Launch, "local_bytes"): _at_least(0),
    (Launch, "shared_bytes"): _at_least(0),
    (Launch, "blocks_per_sm"): _at_least(0),
    (Launch, "occupancy"): _within(0, 1),
    (Launch, "spill_bytes"): _at_least(0),
    (Metric, "name"): _name,
    (Metric, "unit"): _line,
    (Pass, "index"): _at_least(0),
    (Pass, "loops"): _at_least(1),
    (Pass, "samples_ns"): _plausible_latencies,
    (Pass, "sm_mhz"): _at_least(0),
    (Pass, "other_processes"): _at_least(0),
    (Pass, "quarantine"): _line,
    (Measurement, "kernel"): _name,
    (Measurement, "case"): _name,
    (Measurement, "variant"): _name,
    (Measurement, "passes"): _unique(lambda each: each.index, "pass"),
    (Measurement, "metrics"): _unique(lambda each: each.name, "metric"),
    (Measurement, "workload_digest"): _line,
    (Measurement, "source_digest"): _line,
}
"""What a field's value must fulfil beside its type."""
