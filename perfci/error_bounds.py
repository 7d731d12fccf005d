"""Bounds on a result's errors that are frozen beside a kernel's cases, and the file of them.

``bounds.toml`` in a kernel's folder has a table a kind of device and case. It is written by
``perfci check --freeze`` (perfci.freezing) and reviewed like source. Torch-free.

An error is counted in *roundings*: in units of what rounding allows at those inputs,
``u x sqrt(depth) x (|A|·|B|)`` with u the unit round-off of the output's dtype. Inputs with
outliers, whose errors lie orders of magnitude apart, then have errors that can be compared.
"""

import math
import os
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from perfci.declaration import DEVICE_KINDS, Tolerance
from perfci.errors import ConfigurationError
from perfci.history.model import Metric
from perfci.suggest import did_you_mean

BOUNDS_FILE = "bounds.toml"
FEWEST_SEEDS = 20
_LARGEST_FILE_BYTES = 1 << 20
_LONGEST_TEXT = 200
_DIGITS = 2
_PRECISION_BITS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
_AGAIN = "correct it, or take the table out and freeze it again: perfci check --freeze"
_HEADING = """\
# How far the library itself is from float64, at the worst of so many seeds: what results are
# judged by. Written by `perfci check --freeze`; a larger figure is a looser bound.
# `largest` and `rms` are in units of what rounding allows (docs/method.md).
"""

NOT_FROZEN = "not frozen"
STALE = "stale"
"""What a row says of its bounds where it has none to say: ``Bounds.allowed`` says the others."""

Place = tuple[str, str]
"""A kind of device, and a case's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputBound:
    """How far the library is from the judge in one output, at the worst of all seeds.

    ``largest`` is the largest error of an element over the largest allowance of one, ``rms`` the
    root-mean-square error over the root mean square of the allowances. The same absolutely, in
    the output's units, is there to be read: nothing is judged by it.
    """

    largest: float
    rms: float
    max_abs_error: float
    rms_error: float

    def widened(self, other: "OutputBound") -> "OutputBound":
        """The larger of two in each figure."""
        return OutputBound(
            largest=max(self.largest, other.largest),
            rms=max(self.rms, other.rms),
            max_abs_error=max(self.max_abs_error, other.max_abs_error),
            rms_error=max(self.rms_error, other.rms_error),
        )

    def excess(self, dtype: str) -> str:
        """Which figure would allow an error as large as the values themselves; empty for none."""
        most = 2.0 ** _PRECISION_BITS[dtype]
        return next(
            (
                f"{key} = {getattr(self, key):.3g} must be below {most:.2g}"
                for key in _BOUNDING
                if not getattr(self, key) < most
            ),
            "",
        )

    def metrics(self, index: int) -> tuple[Metric, ...]:
        """The figures of the output with that index as they cross a pipe."""
        return tuple(
            Metric(name=f"{index} {each}", value=getattr(self, each), unit="") for each in _FIGURES
        )

    def rounded(self) -> "OutputBound":
        """The figures to two digits, none smaller than it was."""
        return OutputBound(**{each: _round_up(getattr(self, each)) for each in _FIGURES})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What is frozen of a case on a kind of device, and from what it was taken.

    ``workload`` is the digest of the reference and the case at that time.
    """

    workload: str
    seeds: int
    torch: str
    device: str
    outputs: tuple[OutputBound, ...]

    def allowed(self, tolerance: Tolerance) -> str:
        """What a result may have, in a line that compares: ``largest 0.2, rms 0.05``."""
        said = []
        for index, each in enumerate(self.outputs):
            prefix = f"output {index} " if len(self.outputs) > 1 else ""
            for name, value in (
                ("largest", tolerance.max_ratio * each.largest),
                ("rms", tolerance.rms_ratio * each.rms),
            ):
                said.append(f"{prefix}{name} {value:.3g}")
        return ", ".join(said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeze:
    """What became of one case: its bounds before and after; ``reason`` says why they are as before.

    One that ``failed`` could have been frozen, and its reference is none to judge by.
    """

    kernel: str
    case: str
    before: Bounds | None
    after: Bounds | None
    reason: str = ""
    failed: bool = False


def outputs_of(metrics: Iterable[Metric]) -> tuple[OutputBound, ...]:
    """What ``OutputBound.metrics`` has made of all outputs; ValueError where it did not."""
    figures: dict[int, dict[str, float]] = {}
    for metric in metrics:
        number, _, name = metric.name.partition(" ")
        figures.setdefault(int(number), {})[name] = metric.value
    if sorted(figures) != list(range(len(figures))) or not figures:
        raise ValueError("figures of other outputs")
    for index, each in figures.items():
        if each.keys() != set(_FIGURES):
            raise ValueError(f"other figures of output {index}")
    return tuple(OutputBound(**figures[index]) for index in range(len(figures)))


_BOUNDING = ("largest", "rms")
_FIGURES = tuple(each.name for each in fields(OutputBound))


def read_bounds(path: Path, dtypes: Mapping[str, str]) -> dict[Place, Bounds]:
    """The bounds in a file, by device kind and case; empty where there is no file.

    ``dtypes`` has the kernel's cases and their dtypes. Raises ConfigurationError where the file
    says what cannot be meant.
    """
    found = {}
    for kind, tables in _read_tables(path).items():
        if kind not in DEVICE_KINDS:
            known = ", ".join(DEVICE_KINDS)
            raise ConfigurationError(f"{path}: unknown table [{kind}] (known: {known}); {_AGAIN}")
        if not isinstance(tables, dict):
            raise ConfigurationError(f"{path}: {kind} must be a table: write [{kind}.CASE]")
        for case, table in tables.items():
            if case not in dtypes:
                hint = did_you_mean(case, dtypes)
                raise ConfigurationError(
                    f"{path}: [{kind}.{case}]: cases.toml has no such case {hint}; rename the "
                    "table or take it out"
                )
            where = f"{path}: [{kind}.{case}]"
            found[kind, case] = _bounds(table, dtypes[case], where)
    return found


def write_bounds(path: Path, bounds: Mapping[Place, Bounds], cases: Sequence[str]) -> None:
    """Write a file of bounds whole, in the order of the cases, or leave what is there.

    Raises ConfigurationError where the folder cannot be written to.
    """
    text = _HEADING + "".join(_tables(bounds, cases))
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except OSError as error:
        reason = (error.strerror or "").lower()
        raise ConfigurationError(f"{path}: cannot be written ({reason})") from None


def _tables(bounds: Mapping[Place, Bounds], cases: Sequence[str]) -> Iterator[str]:
    for kind in DEVICE_KINDS:
        for case in cases:
            each = bounds.get((kind, case))
            if each is None:
                continue
            figures = ",\n".join(f"  {_inline(output)}" for output in each.outputs)
            yield (
                f"\n[{kind}.{case}]\n"
                f'workload = "{each.workload}"\n'
                f"seeds = {each.seeds}\n"
                f'torch = "{_plain(each.torch)}"\n'
                f'device = "{_plain(each.device)}"\n'
                f"outputs = [\n{figures},\n]\n"
            )


def _inline(output: OutputBound) -> str:
    return f"{{ {', '.join(f'{name} = {getattr(output, name)!r}' for name in _FIGURES)} }}"


def _plain(text: str) -> str:
    """A name of a device or a version without what TOML would read as something else."""
    kept = "".join(each for each in text if each.isprintable() and each not in '"\\')
    return kept[:_LONGEST_TEXT]


def _round_up(value: float) -> float:
    """A positive number to so many digits, never smaller than it was."""
    if value == 0:
        return 0.0
    digits = _DIGITS - 1 - math.floor(math.log10(value))
    # A float that was read of a rounded figure must not be pushed on to the next one.
    near = round(value, digits)
    if math.isclose(near, value, rel_tol=1e-12):
        return near
    return near if near > value else round(near + 10.0**-digits, digits)


def _read_tables(path: Path) -> dict[str, Any]:
    try:
        size_bytes = path.stat().st_size
        if size_bytes > _LARGEST_FILE_BYTES:
            raise ConfigurationError(
                f"{path}: {size_bytes} bytes, more than bounds ever take; take it away and "
                "freeze again: perfci check --freeze"
            )
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        reason = (error.strerror or "").lower()
        raise ConfigurationError(f"{path}: cannot be read ({reason})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigurationError(f"{path}: not valid TOML: {error}; {_AGAIN}") from None


def _bounds(table: Any, dtype: str, where: str) -> Bounds:
    _require_keys(table, [each.name for each in fields(Bounds)], where)
    seeds = table["seeds"]
    if isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < FEWEST_SEEDS:
        raise ConfigurationError(
            f"{where}: seeds = {_shown(seeds)} must be a number, {FEWEST_SEEDS} or more; {_AGAIN}"
        )
    for key in ("workload", "torch", "device"):
        if not isinstance(table[key], str) or len(table[key]) > _LONGEST_TEXT:
            raise ConfigurationError(
                f"{where}: {key} must be a string, {_LONGEST_TEXT} characters at most; {_AGAIN}"
            )
    outputs = table["outputs"]
    if not isinstance(outputs, list) or not outputs:
        raise ConfigurationError(f"{where}: outputs must be a list of tables; {_AGAIN}")
    return Bounds(
        **{
            **table,
            "outputs": tuple(
                _output(each, dtype, f"{where}: outputs[{number}]")
                for number, each in enumerate(outputs)
            ),
        }
    )


def _output(table: Any, dtype: str, where: str) -> OutputBound:
    _require_keys(table, _FIGURES, where)
    for key in _FIGURES:
        value = table[key]
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 <= value < math.inf:
            raise ConfigurationError(
                f"{where}: {key} = {_shown(value)} must be a number, 0 or more; {_AGAIN}"
            )
    output = OutputBound(**{key: float(table[key]) for key in _FIGURES})
    if excess := output.excess(dtype):
        raise ConfigurationError(
            f"{where}: {excess}, where an error is as large as what it is of; {_AGAIN}"
        )
    return output


def _require_keys(table: Any, keys: Sequence[str], where: str) -> None:
    if not isinstance(table, dict):
        raise ConfigurationError(f"{where} must be a table; {_AGAIN}")
    for key in table:
        if key not in keys:
            hint = did_you_mean(key, keys)
            raise ConfigurationError(f"{where}: unknown key '{key}' {hint}; {_AGAIN}")
    for key in keys:
        if key not in table:
            raise ConfigurationError(f"{where}: key '{key}' is missing; {_AGAIN}")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"
