"""What a repository says of its own latencies: what matters where, and what was accepted. Pure.

Both stand in pyproject.toml, so that they are reviewed as code is and have its history.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from perfci.errors import ConfigurationError
from perfci.suggest import did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A slow-down that was accepted, up to a relative change, and why.

    Without a variant or case it is meant of all.
    """

    kernel: str
    variant: str | None = None
    case: str | None = None
    slower_by: float
    reason: str

    def __str__(self) -> str:
        cell = "/".join(each or "*" for each in (self.kernel, self.variant, self.case))
        return f"{cell} slower by {self.slower_by:g}: {self.reason}"


def read_thresholds(value: Any, where: str) -> tuple[tuple[str, float], ...]:
    """The relative changes that matter, by ``kernel`` or ``kernel/case``, in that order of names.

    Raises ConfigurationError.
    """
    if not isinstance(value, Mapping):
        raise ConfigurationError(f'{where} must be a table such as {{ "mla_attention" = 0.02 }}')
    for name, each in value.items():
        if not name or name.count("/") > 1:
            raise ConfigurationError(f"{where}: '{name}' is neither a kernel nor kernel/case")
        _positive(each, f"{where}: {name}")
    return tuple(sorted((name, float(each)) for name, each in value.items()))


def read_accepted(value: Any, where: str) -> tuple[Accepted, ...]:
    """The slow-downs that were accepted. Raises ConfigurationError."""
    if not isinstance(value, list) or not all(isinstance(each, Mapping) for each in value):
        raise ConfigurationError(f"{where} must be tables: write [[tool.perfci.accepted]]")
    return tuple(_accepted(table, f"{where} {number}") for number, table in enumerate(value, 1))


def _accepted(table: Mapping[str, Any], where: str) -> Accepted:
    known = [each.name for each in fields(Accepted)]
    for key in table:
        if key not in known:
            raise ConfigurationError(f"{where}: unknown key '{key}' {did_you_mean(key, known)}")
    for key in ("kernel", "slower_by", "reason"):
        if key not in table:
            raise ConfigurationError(f"{where}: key '{key}' is missing")
    for key in ("kernel", "variant", "case", "reason"):
        if key in table and (not isinstance(table[key], str) or not table[key].strip()):
            raise ConfigurationError(f"{where}: {key} must be a text that is not empty")
    _positive(table["slower_by"], f"{where}: slower_by")
    return Accepted(**table)


def _positive(value: Any, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ConfigurationError(f"{where} = {value!r} must be a number above 0, as 0.02 for 2 %")
