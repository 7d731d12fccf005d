"""NVIDIA's tools that watch a process: where they are, and a run of one with its log kept."""

import asyncio
import contextlib
import os
import re
import shlex
import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfci.config import inherited_environment
from perfci.errors import BuildEnvironmentError
from perfci.toolchain import CUDA_INSTALL_FOLDERS

_OWN_FOLDERS = Path("/opt/nvidia/nsight-compute")
_NUMBERS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A run of a tool: all that it and what it watched printed, and the log that holds it.

    ``code`` is its exit status, None where it was ended after the time that it was given.
    """

    code: int | None
    text: str
    log: Path


def require_program(name: str, hint: str) -> str:
    """The path of a program, on the PATH or where CUDA's installers put it.

    Raises BuildEnvironmentError, with what to install, where there is none.
    """
    found = shutil.which(name) or shutil.which(name, path=":".join(CUDA_INSTALL_FOLDERS))
    if found is None:
        newest_last = sorted(_OWN_FOLDERS.glob(f"*/{name}"), key=_version)
        found = next((str(each) for each in reversed(newest_last)), None)
    if found is None:
        raise BuildEnvironmentError(f"{name}: not installed here; {hint}")
    return found


async def watch(
    command: Sequence[str],
    *,
    log: Path,
    limit_s: float,
    variables: Mapping[str, str],
    folder: Path | None = None,
) -> Watched:
    """Run a tool with what it is to watch; both print into the log, behind the command itself.

    It runs in ``folder``, the current one if None. After ``limit_s``, or where this is cancelled,
    all of its processes are ended.
    """
    shown = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    log.write_text(f"$ {shown} {shlex.join(command)}\n", encoding="utf-8")
    with log.open("ab") as printed:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=printed,
            stderr=printed,
            env=inherited_environment(**variables),
            cwd=folder,
            start_new_session=True,
        )
    code = None
    try:
        async with asyncio.timeout(limit_s):
            code = await process.wait()
    except TimeoutError:
        pass
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    text = log.read_text(encoding="utf-8", errors="replace")
    return Watched(code=code, text=text, log=log)


def _version(path: Path) -> tuple[int, ...]:
    return tuple(int(each) for each in _NUMBERS.findall(path.parent.name))
