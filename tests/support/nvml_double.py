"""A double of pynvml: GPUs that say what a test wants them to. It stands for no driver's habits."""

import sys
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest


class NVMLError(Exception):
    """What everything that NVML refuses is."""


class NVMLError_NotFound(NVMLError):  # noqa: N801, N818 — pynvml's own names
    """No such GPU."""


class NVMLError_NoPermission(NVMLError):  # noqa: N801, N818
    """Not for this user."""


class NVMLError_NotSupported(NVMLError):  # noqa: N801, N818
    """Not of this GPU."""


class Double:
    """The module: every function is of the GPUs that were installed.

    What a GPU is asked is answered from ``answers`` by the function's name, from ``state``, or
    refused as not supported. An answer that is an exception is raised.
    """

    NVMLError = NVMLError
    NVMLError_NotFound = NVMLError_NotFound
    NVMLError_NoPermission = NVMLError_NoPermission
    NVMLError_NotSupported = NVMLError_NotSupported

    def __init__(
        self,
        uuids: Sequence[str],
        *,
        pids: list[int] | None = None,
        sm_mhz: float | None = None,
        throttle_reasons: int = 0,
        answers: dict[str, Any] | None = None,
        refuses: Exception | None = None,
    ) -> None:
        self.uuids = list(uuids)
        self.pids = [] if pids is None else pids
        self.set_calls: list[str] = []
        self._refuses = refuses
        self._answers: dict[str, Any] = {
            "GetCurrentClocksThrottleReasons": throttle_reasons,
            "GetClockInfo": sm_mhz,
            **(answers or {}),
        }

    def nvmlInit(self) -> None:  # noqa: N802
        """Begin, or refuse to."""
        if self._refuses is not None:
            raise self._refuses

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        """A driver's version."""
        return "580.0"

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        """How many GPUs there are."""
        return len(self.uuids)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:  # noqa: N802
        """The UUID, which stands for a handle here."""
        return self.uuids[index]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        """Likewise, of a GPU that is there."""
        if uuid not in self.uuids:
            raise NVMLError_NotFound
        return uuid

    def nvmlDeviceGetUUID(self, handle: str) -> str:  # noqa: N802
        """What the handle is anyway."""
        return handle

    def nvmlDeviceGetComputeRunningProcesses(self, _: str) -> list[Any]:  # noqa: N802
        """The processes that were installed."""
        answer = self._answers.get("GetComputeRunningProcesses")
        if isinstance(answer, Exception):
            raise answer
        return [SimpleNamespace(pid=pid) for pid in self.pids]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("NVML_"):
            return name
        if not name.startswith("nvmlDevice"):
            raise AttributeError(name)
        if "Set" in name or "Reset" in name:
            self.set_calls.append(name)
        return self._answerer(name.removeprefix("nvmlDevice"))

    def _answerer(self, name: str) -> Callable[..., Any]:
        def answer(handle: str, *arguments: Any) -> Any:
            value = self._answers.get(name, NVMLError_NotSupported())
            if isinstance(value, dict):
                value = value.get((handle, *arguments), value.get(handle))
            if isinstance(value, Exception):
                raise value
            return value

        return answer


def install(monkeypatch: pytest.MonkeyPatch, *uuids: str, **state: Any) -> Double:
    """Let perfci find a double for pynvml, with these GPUs."""
    double = Double(uuids, **state)
    monkeypatch.setitem(sys.modules, "pynvml", double)  # type: ignore[arg-type]
    return double
