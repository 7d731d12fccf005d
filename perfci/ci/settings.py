"""What a repository says of its own pipeline: ``[tool.perfci.ci]`` in pyproject.toml."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from perfci.errors import ConfigurationError
from perfci.history.text import is_safe
from perfci.suggest import did_you_mean

_RUNNER = re.compile(r"\w[\w.-]{0,99}", re.ASCII)
_LONGEST_LABEL = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class CiSettings:
    """``runners`` are the labels of those that measure and must report, each of them.

    ``approval_label`` is what lets a fork's commit onto them, ``gate_label`` what asks for a gate
    where a pull request touches no kernel.
    """

    runners: tuple[str, ...] = ("gpu",)
    approval_label: str = "perf-approved"
    gate_label: str = "perf"


def read_ci_settings(value: Any, where: str) -> CiSettings:
    """The settings in a table. Raises ConfigurationError."""
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{where} must be a table: write [tool.perfci.ci]")
    known = [each.name for each in fields(CiSettings)]
    for key in value:
        if key not in known:
            raise ConfigurationError(f"{where}: unknown key '{key}' {did_you_mean(key, known)}")
    for key in ("approval_label", "gate_label"):
        if key in value and not _is_label(value[key]):
            raise ConfigurationError(
                f"{where}: {key} = {value[key]!r} must be the name of a label, on one line"
            )
    labels = {**{each.name: each.default for each in fields(CiSettings)}, **value}
    if labels["approval_label"] == labels["gate_label"]:
        raise ConfigurationError(f"{where}: approval_label and gate_label must be two labels")
    if "runners" in value:
        value = {**value, "runners": _runners(value["runners"], f"{where}: runners")}
    return CiSettings(**value)


def is_runner(name: str) -> bool:
    """Whether a runner may be called so: it names folders, artefacts and a job."""
    return _RUNNER.fullmatch(name) is not None


def _runners(value: Any, where: str) -> tuple[str, ...]:
    named = isinstance(value, list) and all(isinstance(e, str) and is_runner(e) for e in value)
    if not named or not value or len(set(value)) < len(value):
        raise ConfigurationError(
            f'{where} = {value!r} must be a list such as ["h200", "a100"], each once, of letters, '
            "digits, '_', '.' and '-'"
        )
    return tuple(value)


def _is_label(value: Any) -> bool:
    return (
        isinstance(value, str)
        and 0 < len(value.strip()) == len(value) <= _LONGEST_LABEL
        and "\n" not in value
        and is_safe(value)
    )
