"""Which modules of a repository a variant would import, by its text alone."""

from pathlib import Path

import pytest
import scratch

from perfci.kernel import Variant, discover
from perfci.modules import is_installed, is_self_contained, modules_in


def _variant(root: Path, **files: str) -> Variant:
    scratch.write_kernel(root, **files)
    (kernel,) = discover(root / "kernels")
    return kernel.variants[0]


def test_a_module_of_the_repository_is_named_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "package_of_mine").mkdir()
    (tmp_path / "package_of_mine/__init__.py").touch()
    (tmp_path / "file_of_mine.py").touch()
    text = "import torch\ndef run(x, a, b):\n    import package_of_mine.deep, file_of_mine\n"
    variant = _variant(tmp_path, lazy__py=text)
    assert modules_in(tmp_path, variant) == {
        "file_of_mine": tmp_path / "file_of_mine.py",
        "package_of_mine": tmp_path / "package_of_mine",
    }
    assert modules_in(tmp_path / "kernels", variant) == {}
    assert not is_self_contained(variant)


@pytest.mark.parametrize(
    ("text", "is_whole"),
    [
        ("import torch, math, numpy.linalg\n", True),
        ("from torch import nn\n", True),
        ("import nothing_of_that_name\n", False),
        ("x = open('w').read()\n", False),
        ("import importlib\n", False),
        ("from pathlib import Path\n", False),
        ("x = __file__\n", False),
    ],
)
def test_what_a_file_tells_of_all_that_it_runs(tmp_path: Path, text: str, is_whole: bool) -> None:
    assert is_self_contained(_variant(tmp_path, a__py=text + scratch.EAGER)) is is_whole


def test_torch_is_installed_and_a_test_is_not() -> None:
    import torch  # noqa: PLC0415

    assert is_installed(Path(torch.__file__).resolve())
    assert not is_installed(Path(__file__).resolve())
    assert not is_installed(None)
