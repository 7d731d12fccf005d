"""Repositories whose sides bring environments of their own, made offline."""

import sys
from pathlib import Path

import scratch
import torch
import wheels

from perfci.environments.installation import Installation

PACED = """\
import pace


def run(x, a, b):
    pace.wait()
    return a * x + b
"""
_PACE = """\
COUNT = {count}


def wait():
    for _ in range(COUNT):
        pass
"""
SLOW, QUICK = 40_000, 20_000
WHEELS = {"1.0": QUICK, "2.0": SLOW, "2.1": QUICK}
"""Versions of the package, and how far each counts."""


def start(root: Path, **files: str) -> Path:
    """A repository with one Python variant that uses a package, version 1.0; not committed."""
    scratch.quick(root, environment="requirements.txt")
    scratch.write_kernel(root, **{"paced__py": PACED, **files})
    wheelhouse = root.parent / "wheels"
    for version, count in WHEELS.items():
        wheels.write_wheel(wheelhouse, "pace", version, {"pace.py": _PACE.format(count=count)})
    wheels.write_torch(wheelhouse, "2.12.0")
    wheels.write_torch(wheelhouse, "2.13.0")
    (root / ".gitignore").write_text(".perfci/\n")
    scratch.git(root, "init", "-q")
    require(root, pace="1.0", torch="2.12.0")
    return root


def require(root: Path, **versions: str) -> None:
    """Write the requirements of a checkout."""
    lines = ["--no-index", f"--find-links {root.parent / 'wheels'}"]
    lines += [f"{name}=={version}" for name, version in versions.items()]
    (root / "requirements.txt").write_text("\n".join([*lines, ""]))


def installation(digest: str) -> Installation:
    """This Python, as if it had been made for a side."""
    return Installation(
        digest=digest,
        python=Path(sys.executable),
        packages=(("torch", torch.__version__),),
        torch=Path(torch.__file__).parent,
    )
