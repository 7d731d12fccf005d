"""A worker in an environment of its own, run as a file by the Python that is there.

perfci is not installed in that environment and neither is what it needs; what a worker needs of
it comes from where it lies, and nothing else that lies there. The first thing on standard input is
the errand; what follows are the turns.
"""

import importlib.util
import os
import pickle
import sys
from pathlib import Path

SIZE_BYTES = 8
"""The errand's length comes before it, in so many bytes."""
_PACKAGE = Path(__file__).resolve().parents[1]


def main(messages: int) -> None:
    """Read an errand and perform it."""
    _offer_perfci()
    heard = os.dup(0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    size = int.from_bytes(_read(heard, SIZE_BYTES))
    errand = pickle.loads(_read(heard, size))  # noqa: S301 — from the process that started this one

    from perfci.workers.inside import run_errand  # noqa: PLC0415 — perfci is there now

    run_errand(errand, messages, heard)


def _read(pipe: int, size: int) -> bytes:
    content = b""
    while len(content) < size:
        chunk = os.read(pipe, size - len(content))
        if not chunk:
            sys.exit("nothing to do: whoever has started this has ended")
        content += chunk
    return content


def _offer_perfci() -> None:
    spec = importlib.util.spec_from_file_location(
        "perfci", _PACKAGE / "__init__.py", submodule_search_locations=[str(_PACKAGE)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["perfci"] = package
    spec.loader.exec_module(package)


if __name__ == "__main__":
    main(int(sys.argv[1]))
