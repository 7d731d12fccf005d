"""What a kernel changes in its process is no fault, and no figure, of the kernels after it."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest
import scratch
import torch

from perfci import checking
from perfci.checking.surroundings import replaced_function

CASES = '[[bench]]\nname = "large"\ntier = "smoke"\ncount = 4096\n' + "".join(
    f'\n[[check]]\nname = "c{count}"\ntier = "smoke"\ncount = {count}\n' for count in range(1, 13)
)
AT_IMPORT = {
    "limits_files": "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n",
    "changes_folder": "import os\nos.chdir('/')\n",
    "stops_collection": "import gc\ngc.disable()\n",
    "takes_threads": "import torch\ntorch.set_num_threads(torch.get_num_threads() + 1)\n",
    "wants_doubles": "import torch\ntorch.set_default_dtype(torch.float64)\n",
    "starts_process": "import subprocess\nkept = subprocess.Popen(['sleep', '60'])\n",
    "starts_thread": (
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    ),
    "forks": "import os\nos.fork()\n",
}
POISON = """\
from torch.overrides import TorchFunctionMode


class Mode(TorchFunctionMode):
    def __torch_function__(self, *_arguments):
        raise RuntimeError("poison")


Mode().__enter__()
"""
WITNESS = """\
import gc, os, resource, threading, torch

SEEN = (
    resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 64,
    os.getcwd() != "/",
    gc.isenabled(),
    gc.get_freeze_count() > 10_000,  # what was imported is not looked through
    torch.get_num_threads() == THREADS,
    torch.get_default_dtype() == torch.float32,
    threading.active_count() == 1,
    open(f"/proc/self/task/{os.getpid()}/children").read() == "",
)


def run(x, a, b):
    if not all(SEEN):
        raise RuntimeError(f"others left {SEEN}")
    return a * x + b
"""


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Any]:
    root = scratch.quick(tmp_path_factory.mktemp("surroundings") / "root")
    files = {f"{name}__py": text + scratch.EAGER for name, text in AT_IMPORT.items()}
    files |= {
        "poisons__py": POISON + scratch.EAGER,
        "replaces__py": "import torch\ntorch.isfinite = torch.ones_like\n" + scratch.EAGER,
        "witness__py": WITNESS.replace("THREADS", str(torch.get_num_threads())),
    }
    scratch.write_kernel(root, cases__toml=CASES, **files)
    done = scratch.call(root, "run", "--json", "--commit", "abcdef1")
    assert "Traceback" not in done.stderr
    return scratch.rows(json.loads(done.stdout))


def test_none_of_it_reaches_another_kernel(rows: dict[tuple[str, str], Any]) -> None:
    witness = {case: row for (variant, case), row in rows.items() if variant == "witness"}
    assert len(witness) == 13
    assert {row["status"] for row in witness.values()} == {"passed"}, witness


@pytest.mark.parametrize("variant", AT_IMPORT)
def test_what_harms_nobody_else_is_no_fault(rows: dict[tuple[str, str], Any], variant: str) -> None:
    assert {row["status"] for (name, _), row in rows.items() if name == variant} == {"passed"}


def test_who_replaces_a_function_of_the_judges_has_failed(
    rows: dict[tuple[str, str], Any],
) -> None:
    row = rows["replaces", "large"]
    assert row["status"] == "runtime_error"
    assert row["message"] == "replaces torch.isfinite, by which it would be judged"


def _torch_functions(path: Path) -> set[str]:
    """The functions of torch itself that a module names; no class, context or setting."""
    named = {
        node.attr
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "torch"
    }
    return {each for each in named if isinstance(getattr(torch, each), type(torch.where))}


def test_every_function_that_judges_use_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(checking.__path__[0])
    modules = ("check", "inputs", "numerics", "outputs", "recheck", "repeats")
    used = set().union(*(_torch_functions(folder / f"{each}.py") for each in modules))
    assert {"cat", "isfinite"} <= used
    for name in used:
        with monkeypatch.context() as patch:
            patch.setattr(torch, name, lambda *_: None)
            assert replaced_function() == f"torch.{name}"
    assert replaced_function() == ""


def test_who_poisons_torch_has_failed_alone(rows: dict[tuple[str, str], Any]) -> None:
    failed = {name for (name, _), row in rows.items() if row["status"] != "passed"}
    assert failed == {"poisons", "replaces"}
