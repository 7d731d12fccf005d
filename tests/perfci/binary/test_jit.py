"""Whose Triton functions are compiled as they are; doubles stand for Triton's classes.

Triton itself is where a GPU is: tests/perfci/workers/test_places_gpu.py asks it.
"""

from types import FunctionType, SimpleNamespace

import pytest

from perfci.binary.jit import is_compiled_as_it_is


def _named(module: str) -> FunctionType:
    def function() -> None: ...

    function.__module__ = module
    return function


class _Function:
    """``triton.runtime.jit.JITFunction``."""

    def __init__(self, module: str) -> None:
        self.fn = _named(module)
        self.device_caches: dict[int, object] = {}


class _Autotuner:
    """``triton.runtime.autotuner.Autotuner``."""

    def __init__(self, fn: _Function) -> None:
        self.fn = fn


class _Refuses:
    """What a variant may hold: it fails whoever asks it for anything."""

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(name)


_Function.__module__, _Autotuner.__module__ = "triton.runtime.jit", "triton.runtime.autotuner"


@pytest.mark.parametrize(
    ("namespace", "said"),
    [
        ({}, False),
        ({"run": _named("own")}, False),
        ({"add": _Function("own"), "run": _named("own")}, True),
        ({"add": _Function("own"), "mul": _Function("own")}, True),
        ({"add": _Function("own"), "late": _Refuses()}, True),
        ({"add": _Function("own"), "mul": _Function("helper")}, False),
        ({"add": _Function("own"), "best": _Autotuner(_Function("own"))}, False),
        ({"add": _Function("own"), "fast": SimpleNamespace(_torchdynamo_orig_callable=1)}, False),
    ],
)
def test_only_functions_of_its_own_that_nothing_chooses_for(
    namespace: dict[str, object], said: bool
) -> None:
    assert is_compiled_as_it_is({"__name__": "own", **namespace}) is said
