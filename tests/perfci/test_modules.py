"""Whether a Python variant is all of what it runs, as far as its text tells."""

from pathlib import Path

import pytest
import scratch

from perfci.kernel import read_kernels
from perfci.modules import is_self_contained


@pytest.mark.parametrize(
    ("text", "is_whole"),
    [
        ("import torch\ng = torch.compile(lambda x: x)\n", True),
        ("import re\np = re.compile('a')\n", True),
        ("g = eval('1')\n", False),
        ("g = compile('1', 'a', 'eval')\n", False),
        ("from builtins import compile as c\n", False),
        ("import builtins\ng = builtins.eval('1')\n", False),
        ("import torch\nw = torch.serialization.open('w.pt')\n", False),
    ],
)
def test_what_reads_more_than_its_own_text_is_not_all_of_it(
    tmp_path: Path, text: str, is_whole: bool
) -> None:
    scratch.write_kernel(tmp_path, mine__py=text + scratch.EAGER)
    (kernel,) = read_kernels(tmp_path / "kernels")
    (variant,) = kernel.variants
    assert is_self_contained(variant) is is_whole
