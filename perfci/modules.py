"""What Python modules a variant uses, as far as its text tells: nothing is imported to know.

Two commits in one process share every module that is imported by name, so that one that lies in
the repository would be the working tree's on both sides.
"""

import ast
import importlib.util
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from perfci.kernel import Variant

_READS_MORE = frozenset(
    {"__file__", "__import__", "compile", "eval", "exec", "importlib", "open", "pathlib", "runpy"}
)
"""Names with which a file may use what its imports do not tell."""

_HARMLESS_OF_A_MODULE = frozenset({"compile"})
"""Of those the names that are none as a module's own: ``torch.compile``, ``re.compile``."""


def modules_in(folder: Path, variant: Variant) -> dict[str, Path]:
    """The top-level modules that a variant imports from under a folder, the environment's aside.

    Each with its file, or the folder of a package. In an environment of its own a variant finds
    none of them.
    """
    if variant.installation is not None:
        return {}
    places = {name: _place(name) for name in _imported(variant)}
    return {
        name: place.parent if place.name == "__init__.py" else place
        for name, place in places.items()
        if place is not None and place.is_relative_to(folder) and not is_installed(place)
    }


def is_installed(place: Path | None) -> bool:
    """Whether a file is Python's own or an installed package's."""
    return place is not None and any(place.is_relative_to(each) for each in _environment())


def is_self_contained(variant: Variant) -> bool:
    """Whether all that a Python variant runs is its own text and what is installed."""
    if any(not is_installed(_place(name)) for name in _imported(variant)):
        return False
    if variant.path is None:
        return True
    tree = _parse(variant.path)
    return tree is not None and not any(name in _READS_MORE for name in _names(tree))


@cache
def _environment() -> tuple[Path, ...]:
    """The folders of Python's own modules and of what is installed; where torch is, others are."""
    folders = [sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")]
    torch = importlib.util.find_spec("torch")
    if torch is not None and torch.origin is not None:
        folders.append(str(Path(torch.origin).parents[1]))
    return tuple(Path(each).resolve() for each in folders)


def _imported(variant: Variant) -> list[str]:
    if variant.kind == "function":
        assert variant.function is not None
        return [variant.function.partition(".")[0].partition(":")[0]]
    if variant.kind != "python" or variant.path is None:
        return []
    tree = _parse(variant.path)
    return [] if tree is None else sorted(set(_imports(tree)))


def _parse(path: Path) -> ast.Module | None:
    try:
        return ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return None


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name.partition(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


def _names(tree: ast.Module) -> Iterator[str]:
    """Every name that a file uses, imports and attributes too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute) and node.attr not in _HARMLESS_OF_A_MODULE:
            yield node.attr
        elif isinstance(node, ast.ImportFrom):
            yield from (each.name for each in node.names)
    yield from _imports(tree)


def _place(name: str) -> Path | None:
    """Where a top-level module would be imported from; None where that is nowhere to be found."""
    try:
        spec = importlib.util.find_spec(name) if name else None
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    if spec.origin in (None, "built-in", "frozen"):
        places = list(spec.submodule_search_locations or ())
        return Path(places[0]).resolve() if places else _environment()[0]
    return Path(spec.origin or "").resolve()
