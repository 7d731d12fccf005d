"""Kernels as they lie on disk: variants, cases, tolerances. Torch-free; reads, never runs.

The layout of a kernel's folder is described in docs/adding-a-kernel.md.
"""

import ast
import hashlib
import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from perfci import units
from perfci.declaration import (
    DEVICE_KINDS,
    DTYPES,
    GENERAL_RULE,
    Declaration,
    Tolerance,
    chosen,
    declared_in_source,
    declared_in_table,
    declared_tolerance,
)
from perfci.environments.installation import Installation
from perfci.error_bounds import BOUNDS_FILE, NOT_FROZEN, STALE, Bounds, Place, read_bounds
from perfci.errors import ConfigurationError
from perfci.history.model import ANCHOR_PREFIX, is_anchor
from perfci.suggest import did_you_mean

Tier = Literal["smoke", "full"]
Kind = Literal["c", "extension", "python", "function"]
Scalar = int | float | str | bool

DISTRIBUTIONS = ("normal", "large", "tiny", "outliers")
LAYOUTS = ("contiguous", "strided", "offset")
_NAME = re.compile(r"[a-z0-9][a-z0-9_]{0,63}")
_SOURCE_SUFFIXES = {".cpp", ".cu", ".py"}
_EXTENSION_MARK = re.compile(rb"^\s*PYBIND11_MODULE\s*\(", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One set of arguments at which a kernel is checked and, where ``timed``, timed.

    ``memory_gib`` is what a device must have for variant, judge and yardstick together.
    """

    name: str
    timed: bool
    tier: Tier = "full"
    dtype: str = "float32"
    devices: tuple[str, ...] = DEVICE_KINDS
    distribution: str = "normal"
    layout: str = "contiguous"
    memory_gib: float = 0.0
    arguments: tuple[tuple[str, Scalar], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One way to compute a kernel: a source file, or a function of an installed package.

    It runs in the environment that runs perfci, unless it has an ``installation`` of its own.
    """

    kernel: str
    name: str
    kind: Kind
    path: Path | None
    function: str | None = None
    declaration: Declaration
    installation: Installation | None = None

    @property
    def key(self) -> tuple[str, str]:
        """What no other variant of a run has: kernel and name."""
        return self.kernel, self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A kernel: what is computed (workload) and the variants that compute it.

    ``workload_folder`` holds reference and cases; it differs from ``folder`` when the variants
    of one commit are judged by the workload of another. ``frozen`` are the bounds of its errors by
    kind of device and case; where reference or case have changed since, they are ``stale``.
    """

    name: str
    folder: Path
    workload_folder: Path
    variants: tuple[Variant, ...]
    controls: tuple[Variant, ...]
    cases: tuple[Case, ...]
    tolerances: Mapping[str, Tolerance]
    frozen: Mapping[Place, Bounds]
    stale: frozenset[Place]

    def tolerance(self, dtype: str) -> Tolerance:
        """The tolerance for a dtype, the general rule where none is declared."""
        return self.tolerances.get(dtype, GENERAL_RULE)

    def judged_by(self, place: Place, tolerance: Tolerance) -> str:
        """What is allowed there by frozen bounds, or that they are stale or none."""
        if place in self.frozen:
            return self.frozen[place].allowed(tolerance)
        return STALE if place in self.stale else NOT_FROZEN

    def workload_digest(self, case: Case) -> str:
        """What breaks a series when it changes: the reference's text and the case's arguments."""
        return _workload_digest(self.workload_folder, case)


def discover(kernels: Path, *, workloads: Path | None = None) -> list[Kernel]:
    """All of a user's kernels under a folder, by name.

    With ``workloads``, references and cases come from there, and kernels that have none there
    are left out. Raises ConfigurationError where there is no such folder or a file is wrong.
    """
    if not kernels.is_dir():
        raise ConfigurationError(
            f"{kernels}: no such folder; name the folder of kernels with --kernels or in "
            "[tool.perfci] kernels"
        )
    found = read_kernels(kernels, workloads)
    for kernel in found:
        if is_anchor(kernel.name):
            raise ConfigurationError(
                f"{kernel.folder}: names that begin with {ANCHOR_PREFIX} are perfci's own; "
                "rename the folder"
            )
    return found


def read_kernels(kernels: Path, workloads: Path | None = None) -> list[Kernel]:
    """All kernels under a folder that is there, by name. Raises ConfigurationError."""
    found = []
    for folder in sorted(each for each in kernels.iterdir() if each.is_dir()):
        workload = (workloads or kernels) / folder.name
        files = ("reference.py", "cases.toml")
        if folder.name.startswith((".", "_")) or not any((workload / f).is_file() for f in files):
            continue
        found.append(_read_kernel(folder, workload))
    return found


def skip_reason(
    variant: Variant, case: Case, device_kind: str, *, device_memory_bytes: int | None = None
) -> str:
    """Why a variant is declared not to take a case on a device; empty where it does.

    A device whose memory is not known is taken to have enough.
    """
    declared = variant.declaration
    if device_kind not in declared.devices:
        return f"declared for {', '.join(declared.devices)} only"
    if case.dtype not in declared.dtypes:
        return f"declared for {', '.join(declared.dtypes)} only"
    if lack := lacking_memory(case, device_memory_bytes):
        return lack
    arguments = dict(case.arguments)
    for key, limit in declared.maxima:
        value = arguments.get(key)
        if isinstance(value, int | float) and value > limit:
            return f"{key} = {value} is above the declared maximum {limit:g}"
    return ""


def lacking_memory(case: Case, device_memory_bytes: int | None) -> str:
    """What memory a case needs and a device has; empty where it fits, or that is not known."""
    if device_memory_bytes is None or case.memory_gib * 2**30 <= device_memory_bytes:
        return ""
    memory = units.format_bytes(device_memory_bytes)
    return f"the case needs {case.memory_gib:g} GiB of memory, this device has {memory}"


def check_name(name: str, where: Path | str) -> str:
    """The name itself; ConfigurationError unless it is made of a-z, 0-9 and underscores."""
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"{where}: bad name {name!r}; use a-z, 0-9 and underscores, 64 at most"
        )
    return name


def _read_kernel(folder: Path, workload: Path) -> Kernel:
    name = check_name(folder.name, folder)
    cases, tolerances = _read_cases(workload)
    variants = tuple(_variants(name, folder))
    controls = tuple(_variants(name, folder / "wrong")) if (folder / "wrong").is_dir() else ()
    for control in controls:
        if control.name in {each.name for each in variants}:
            raise ConfigurationError(
                f"{folder / 'wrong'}: control '{control.name}' has the name of a variant; "
                "rename one"
            )
    bounds = read_bounds(workload / BOUNDS_FILE, {each.name: each.dtype for each in cases})
    digests = {each.name: _workload_digest(workload, each) for each in cases}
    frozen = {at: each for at, each in bounds.items() if each.workload == digests[at[1]]}
    return Kernel(
        name=name,
        folder=folder,
        workload_folder=workload,
        variants=variants,
        controls=controls,
        cases=cases,
        tolerances=tolerances,
        frozen=frozen,
        stale=frozenset(bounds.keys() - frozen.keys()),
    )


def _workload_digest(folder: Path, case: Case) -> str:
    digest = hashlib.sha256((folder / "reference.py").read_bytes())
    arguments = [case.dtype, case.distribution, case.layout, sorted(case.arguments)]
    digest.update(json.dumps(arguments).encode())
    return digest.hexdigest()[:16]


def _variants(kernel: str, folder: Path) -> Iterable[Variant]:
    seen: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix not in _SOURCE_SUFFIXES or path.name == "reference.py":
            continue
        name = check_name(path.stem, path)
        if name in seen:
            raise ConfigurationError(
                f"{path}: variant '{name}' stands in {seen[name].name} already; rename one"
            )
        seen[name] = path
        yield Variant(
            kernel=kernel,
            name=name,
            kind=_kind(path),
            path=path,
            declaration=declared_in_source(path),
        )
    table = folder / "variants.toml"
    for name, entry in _read_toml(table).items() if table.is_file() else ():
        if check_name(name, table) in seen:
            raise ConfigurationError(f"{table}: variant '{name}' is a file already; rename one")
        function, declaration = declared_in_table(entry, f"{table}: [{name}]")
        yield Variant(
            kernel=kernel,
            name=name,
            kind="function",
            path=None,
            function=function,
            declaration=declaration,
        )


def _kind(path: Path) -> Kind:
    if path.suffix == ".py":
        return "python"
    return "extension" if _EXTENSION_MARK.search(path.read_bytes()) else "c"


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: no such file; a kernel needs one") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: not valid TOML: {error}") from None


def _read_cases(workload: Path) -> tuple[tuple[Case, ...], dict[str, Tolerance]]:
    path = workload / "cases.toml"
    tables = _read_toml(path)
    _refuse_unknown(tables, ("bench", "check", "tolerance"), f"{path}")
    parameters = _make_inputs_parameters(workload / "reference.py")
    cases = [
        _case(table, timed, parameters, f"{path}: [[{heading}]]")
        for heading, timed in (("bench", True), ("check", False))
        for table in _tables(tables, heading, path)
    ]
    names = [case.name for case in cases]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"{path}: two cases are named '{name}'; rename one")
    if not cases:
        raise ConfigurationError(f"{path}: no [[bench]] or [[check]] table; write at least one")
    return tuple(cases), _tolerances(tables.get("tolerance", {}), path)


def _tables(tables: Mapping[str, Any], heading: str, path: Path) -> list[dict[str, Any]]:
    value = tables.get(heading, [])
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ConfigurationError(
            f"{path}: {heading} must be an array of tables: write [[{heading}]]"
        )
    return value


def _case(table: Mapping[str, Any], timed: bool, parameters: set[str], where: str) -> Case:  # noqa: FBT001
    if not isinstance(table.get("name"), str):
        raise ConfigurationError(f'{where}: a case without a name; add name = "…"')
    where = f"{where} '{table['name']}'"
    own = {
        "name": check_name(table["name"], where),
        "tier": _choice(table, "tier", ("smoke", "full"), "full", where),
        "dtype": _choice(table, "dtype", DTYPES, "float32", where),
        "distribution": _choice(table, "distribution", DISTRIBUTIONS, "normal", where),
        "layout": _choice(table, "layout", LAYOUTS, "contiguous", where),
        "devices": chosen(table.get("devices", [*DEVICE_KINDS]), DEVICE_KINDS, f"{where}: devices"),
        "memory_gib": _memory(table.get("memory_gib", 0.0), where),
    }
    arguments = {key: value for key, value in table.items() if key not in own}
    _refuse_unknown(arguments, (*parameters, *own), where)
    missing = sorted(parameters - set(arguments))
    if missing:
        raise ConfigurationError(f"{where}: key '{missing[0]}' is missing; make_inputs needs it")
    for key, value in arguments.items():
        if not isinstance(value, int | float | str | bool):
            raise ConfigurationError(f"{where}: {key} must be a number, a string or a boolean")
    return Case(timed=timed, arguments=tuple(arguments.items()), **cast("Any", own))


def _choice(
    table: Mapping[str, Any], key: str, known: tuple[str, ...], default: str, where: str
) -> str:
    value = table.get(key, default)
    if value not in known:
        raise ConfigurationError(f"{where}: {key} = {value!r} is not one of {', '.join(known)}")
    return str(value)


def _memory(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ConfigurationError(f"{where}: memory_gib = {value!r} must be a number, 0 or more")
    return float(value)


def _tolerances(tables: Any, path: Path) -> dict[str, Tolerance]:
    if not isinstance(tables, dict):
        raise ConfigurationError(f"{path}: tolerance must be a table: write [tolerance.float32]")
    _refuse_unknown(tables, DTYPES, f"{path}: [tolerance]")
    return {
        dtype: declared_tolerance(table, f"{path}: [tolerance.{dtype}]")
        for dtype, table in tables.items()
    }


def _refuse_unknown(given: Iterable[str], known: Iterable[str], where: str) -> None:
    allowed = tuple(known)
    for key in given:
        if key not in allowed:
            raise ConfigurationError(f"{where}: unknown key '{key}' {did_you_mean(key, allowed)}")


def _make_inputs_parameters(reference: Path) -> set[str]:
    """The case's keys that make_inputs wants, read from its signature without running it."""
    try:
        tree = ast.parse(reference.read_text(encoding="utf-8"), filename=str(reference))
    except FileNotFoundError:
        raise ConfigurationError(f"{reference}: no such file; a kernel needs one") from None
    except (SyntaxError, ValueError) as error:
        raise ConfigurationError(f"{reference}: does not parse: {error}") from None
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for needed in ("make_inputs", "reference", "bytes_moved", "flops"):
        if needed not in functions:
            raise ConfigurationError(f"{reference}: has no function '{needed}'; a kernel needs it")
    signature = functions["make_inputs"].args
    names = {each.arg for each in (*signature.posonlyargs, *signature.args, *signature.kwonlyargs)}
    return names - {"dtype", "device", "generator"}
