"""Imports go one way: history ← perfci ← command line, and torch stays with what needs it."""

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[1]
_STANDARD = sys.stdlib_module_names
_KERNELS_MAY = {"torch", "triton"}
_HISTORY_MAY = {"numpy", "git"}
_STORES_MAY = _HISTORY_MAY | {"alembic", "sqlalchemy"}
_RUN_BY_ALEMBIC = "perfci.history.stores.migrations.env"
_WITH_KERNELS = {("perfci", "anchors"), ("perfci", "selftest")}
_TOP = ("perfci.cli", "perfci.__main__")
_WITH_TORCH = {  # at the latest when their functions run; every other module does without
    "perfci.tools.caller",
    "perfci.gpu.capture",
    "perfci.checking.check",
    "perfci.bisect.confirmation",
    "perfci.gate.contest",
    "perfci.entry",
    "perfci.workers.footprint",
    "perfci.freezing",
    "perfci.bisect.hunt",
    "perfci.checking.inputs",
    "perfci.gpu.launches",
    "perfci.checking.numerics",
    "perfci.checking.outputs",
    "perfci.workers.places",
    "perfci.workers.crew",
    "perfci.workers.inside",
    "perfci.workers.outpost",
    "perfci.workers.passes",
    "perfci.workers.process",
    "perfci.workers.side",
    "perfci.workers.starting",
    "perfci.bisect.placing",
    "perfci.prepare",
    "perfci.workers.probe",
    "perfci.bisect.proof",
    "perfci.checking.recheck",
    "perfci.recording",
    "perfci.checking.repeats",
    "perfci.run",
    "perfci.selftest.scenarios",
    "perfci.shortage",
    "perfci.checking.surroundings",
    "perfci.timers.cuda_cold",
    "perfci.timers.cuda_hot",
    "perfci.timers.cuda_scattered",
    "perfci.timers.cuda_stream",
    "perfci.timers.host",
    "perfci.bisect.trials",
    "perfci.checking.weakness",
    "perfci.workers.worker",
    "perfci.checking.yardstick",
}


@dataclass(frozen=True)
class Import:
    """One imported name; ``lazy`` where a function imports it."""

    name: str
    lazy: bool


def _is_within(module: str, *packages: str) -> bool:
    return any(module == each or module.startswith(f"{each}.") for each in packages)


def _read_sources() -> dict[str, str]:
    """The text of every module of perfci, history and dashboard by its import name."""
    sources = {}
    for folder, package in (("perfci", ""), ("history", "perfci."), ("dashboard", "perfci.")):
        for path in sorted((_ROOT / folder).rglob("*.py")):
            parts = path.relative_to(_ROOT).with_suffix("").parts
            if folder == "perfci" and parts[1] in ("history", "dashboard"):
                continue  # links that some versions of Python follow
            if parts[:2] in _WITH_KERNELS and len(parts) > 3:
                continue  # kernels, which perfci loads as it loads a user's
            name = package + ".".join(parts).removesuffix(".__init__")
            sources[name] = path.read_text(encoding="utf-8")
    return sources


def _walk(node: ast.AST, *, lazy: bool) -> Iterator[tuple[ast.AST, bool]]:
    for child in ast.iter_child_nodes(node):
        yield child, lazy
        inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from _walk(child, lazy=lazy or inside)


@cache
def read_imports(source: str) -> tuple[Import, ...]:
    """Every import of a module, wherever it stands; ``from a import b`` is both a and a.b."""
    found = []
    for node, lazy in _walk(ast.parse(source), lazy=False):
        if isinstance(node, ast.Import):
            found += [Import(each.name, lazy) for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            found += [
                Import(base, lazy),
                *(Import(f"{base}.{each.name}", lazy) for each in node.names),
            ]
    return tuple(found)


def _reach(module: str, sources: Mapping[str, str], *, lazily: bool) -> dict[str, str]:
    """All that importing a module imports, each with the module that imports it first."""
    reached: dict[str, str] = {}
    waiting = [module]
    while waiting:
        importer = waiting.pop()
        for each in read_imports(sources[importer]):
            if each.lazy and not lazily:
                continue
            parts = each.name.split(".")
            for length in range(1, len(parts) + 1):
                name = ".".join(parts[:length])
                if name not in reached:
                    reached[name] = importer
                    waiting += [name] if name in sources else []
    return reached


def _find_forbidden(module: str, names: set[str]) -> set[str]:
    """What a module imports that its layer may not."""
    outside = {name for name in names if not _is_within(name, "perfci", *_STANDARD)}
    ours = names - outside
    if _is_within(module, "perfci.history"):
        may = _STORES_MAY if _is_within(module, "perfci.history.stores") else _HISTORY_MAY
        strangers = {each for each in ours if _is_within(each, "perfci")} - {"perfci"}
        return {each for each in outside if not _is_within(each, *may)} | {
            each for each in strangers if not _is_within(each, "perfci.history")
        }
    if _is_within(module, "perfci.dashboard"):
        return {each for each in ours if _is_within(each, *_TOP)}
    if not _is_within(module, *_TOP):
        return {each for each in ours if _is_within(each, "perfci.dashboard", *_TOP)}
    return set()


def find_violations(sources: Mapping[str, str]) -> list[str]:
    """Say of every module what it imports that it may not."""
    violations = []
    for module, source in sources.items():
        names = {each.name for each in read_imports(source)}
        violations += [
            f"{module} imports {each}" for each in sorted(_find_forbidden(module, names))
        ]
        if any(name.startswith(".") for name in names):
            violations.append(f"{module} imports relatively")
        if module in _WITH_TORCH:
            continue
        reached = _reach(module, sources, lazily=not _is_within(module, *_TOP))
        banned = ("torch", "dash") if module in _TOP else ("torch",)
        violations += [
            f"{module} reaches {each} through {reached[each]}" for each in banned if each in reached
        ]
    return violations


def test_every_import_goes_the_right_way() -> None:
    assert find_violations(_read_sources()) == []


def find_cycle(sources: Mapping[str, str]) -> list[str]:
    """The packages right inside perfci of which each imports the next, back to the first."""
    names = {_package(module) for module in sources if module.count(".") > 1}
    needs: dict[str, set[str]] = {name: set() for name in names}
    for module, source in sources.items():
        if (name := _package(module)) in names:
            needs[name] |= {_package(each.name) for each in read_imports(source)} & names - {name}
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def _package(module: str) -> str:
    return ".".join(module.split(".")[:2])


def test_no_packages_import_each_other() -> None:
    assert find_cycle(_read_sources()) == []


def test_packages_that_import_each_other_are_found() -> None:
    planted = {
        "perfci.a.one": "from perfci.b import two",
        "perfci.b.two": "def late():\n    import perfci.c.three",
        "perfci.c.three": "import perfci.plain",
        "perfci.plain": "import perfci.c.three",
    }
    assert find_cycle(planted) == []
    planted["perfci.c.three"] = "import perfci.a"
    assert set(find_cycle(planted)) == {"perfci.a", "perfci.b", "perfci.c"}


def test_every_module_that_may_import_torch_does() -> None:
    sources = _read_sources()
    idle = [each for each in _WITH_TORCH if "torch" not in _reach(each, sources, lazily=True)]
    assert idle == []


def test_kernels_import_torch_and_triton_only() -> None:
    strangers = [
        f"{path.relative_to(_ROOT)} imports {each.name}"
        for folder in ("kernels", "perfci/anchors")
        for path in sorted((_ROOT / folder).glob("*/**/*.py"))
        for each in read_imports(path.read_text(encoding="utf-8"))
        if not _is_within(each.name, *_KERNELS_MAY, *_STANDARD)
    ]
    assert strangers == []


def test_one_module_alone_speaks_to_github() -> None:
    callers = [
        module
        for module, source in _read_sources().items()
        if any(_is_within(each.name, "github") for each in read_imports(source))
    ]
    assert callers == ["perfci.ci.github"]


_PLANTED = {
    "perfci": "",
    "perfci.errors": "",
    "perfci.history": "",
    "perfci.history.model": "import math, numpy\n",
    "perfci.checking.check": "import torch\n",
    "perfci.decision.stats": "import numpy\n",
    "perfci.dashboard": "from perfci.history import model\n",
    "perfci.cli": "def run():\n    from perfci.checking import check\n",
}


@pytest.mark.parametrize(
    ("module", "source", "violation"),
    [
        (
            "perfci.decision.stats",
            "def f():\n    import torch\n",
            "reaches torch through perfci.decision.stats",
        ),
        (
            "perfci.decision.stats",
            "from perfci.checking import check\n",
            "reaches torch through perfci.checking.check",
        ),
        (
            "perfci.decision.stats",
            "class A:\n    import torch.nn as n\n",
            "reaches torch through perfci.decision.stats",
        ),
        (
            "perfci.dashboard",
            "import perfci.checking.check\n",
            "reaches torch through perfci.checking.check",
        ),
        ("perfci.history.model", "import perfci.errors\n", "imports perfci.errors"),
        ("perfci.history.model", "from perfci import errors\n", "imports perfci.errors"),
        ("perfci.history.model", "import sqlalchemy\n", "imports sqlalchemy"),
        ("perfci.history.model", "from . import text\n", "imports relatively"),
        ("perfci.decision.stats", "import perfci.cli\n", "imports perfci.cli"),
        ("perfci.checking.check", "from perfci import dashboard\n", "imports perfci.dashboard"),
        ("perfci.dashboard", "from perfci.cli import main\n", "imports perfci.cli"),
        (
            "perfci.cli",
            "from perfci.checking import check\n",
            "reaches torch through perfci.checking.check",
        ),
        ("perfci.cli", "from dash import Dash\n", "reaches dash through perfci.cli"),
    ],
)
def test_a_planted_import_is_found(module: str, source: str, violation: str) -> None:
    assert find_violations(_PLANTED) == []
    found = find_violations({**_PLANTED, module: source})
    assert f"{module} {violation}" in found


def test_what_needs_no_torch_imports_without_it() -> None:
    """Pages are left to the app that registers them, and migrations to Alembic."""
    modules = [
        module
        for module in _read_sources()
        if module not in _WITH_TORCH
        and not _is_within(module, "perfci.dashboard.pages", "perfci.__main__", _RUN_BY_ALEMBIC)
    ]
    program = (
        "import importlib, sys\n"
        "sys.modules['torch'] = None\n"
        "for name in sys.argv[1:]:\n"
        "    importlib.import_module(name)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *modules],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
