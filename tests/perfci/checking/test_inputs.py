"""Arguments of a kernel: drawn from a seed, scaled, laid out, and kept to compare with."""

from pathlib import Path

import pytest
import scratch
import torch

from perfci.checking.inputs import (
    Arguments,
    Reference,
    as_float64,
    as_tuple,
    call_wanted,
    count_bytes,
    describe,
    draw_inputs,
    load_module,
    load_reference,
    snapshot,
)
from perfci.entry import KernelError
from perfci.errors import ConfigurationError
from perfci.kernel import Case, discover


@pytest.fixture
def reference(tmp_path: Path) -> Reference:
    scratch.write_kernel(tmp_path)
    (kernel,) = discover(tmp_path / "kernels")
    return load_reference(kernel)


def _drawn(reference: Reference, *, seed: int = 1, count: int = 4000, **more: str) -> Arguments:
    case = Case(name="one", timed=False, arguments=(("count", count),), **more)
    return draw_inputs(reference, case, device="cpu", seed=seed)


def test_a_seed_draws_the_same_and_another_another(reference: Reference) -> None:
    first, same, other = (_drawn(reference, seed=seed)["x"] for seed in (1, 1, 2))
    assert torch.equal(first, same)
    assert not torch.equal(first, other)
    assert list(_drawn(reference)) == ["x", "a", "b"]
    assert _drawn(reference, dtype="bfloat16")["x"].dtype == torch.bfloat16


def test_distributions_are_scaled_or_spiked(reference: Reference) -> None:
    normal = _drawn(reference)["x"]
    assert torch.equal(_drawn(reference, distribution="large")["x"], normal * 1e3)
    assert torch.equal(_drawn(reference, distribution="tiny")["x"], normal * 1e-3)
    spiked = _drawn(reference, distribution="outliers")["x"]
    changed = spiked != normal
    assert 0 < int(changed.sum()) < 40
    assert torch.equal(spiked[changed], normal[changed] * 1e3)


@pytest.mark.parametrize("layout", ["strided", "offset"])
def test_layouts_hold_the_same_values(reference: Reference, layout: str) -> None:
    plain, laid = _drawn(reference)["x"], _drawn(reference, layout=layout)["x"]
    assert torch.equal(plain, laid)
    assert (plain.stride(), plain.storage_offset()) == ((1,), 0)
    expected = {"strided": ((2,), 0), "offset": ((1,), 3)}
    assert (laid.stride(), laid.storage_offset()) == expected[layout]
    whole = torch.empty(0).set_(laid.untyped_storage())
    assert int(torch.isnan(whole).sum()) == whole.numel() - laid.numel()


def test_the_judge_has_the_same_rounded_arguments() -> None:
    given = {"x": torch.tensor([0.1], dtype=torch.float16), "i": torch.tensor([1]), "n": 2}
    exact = as_float64(given)
    assert exact["x"].dtype == torch.float64
    assert float(exact["x"]) == float(given["x"])
    assert (exact["i"], exact["n"]) == (given["i"], 2)


def test_a_snapshot_does_not_follow_its_original() -> None:
    given = {"x": torch.zeros(2), "n": 1}
    kept = snapshot(given)
    given["x"].fill_(1)
    assert kept["x"].tolist() == [0, 0]


def test_a_function_gets_what_it_takes() -> None:
    given = {"rows": 2, "columns": 3}
    assert call_wanted(lambda *, rows, columns: rows * columns, given) == 6
    assert call_wanted(lambda *, columns: columns, given) == 3


def test_outputs_are_a_tuple() -> None:
    x = torch.ones(1)
    assert as_tuple(x) == (x,)
    assert as_tuple([x, x]) == (x, x)


def test_an_error_is_described_in_a_line() -> None:
    assert describe(ValueError(" one\ntwo")) == "ValueError: one"
    assert describe(KeyError()) == "KeyError"
    assert describe(KernelError("x is not float32")) == "x is not float32"


def test_an_error_is_described_with_its_place_in_the_users_file(tmp_path: Path) -> None:
    path = tmp_path / "variant.py"
    path.write_text("import torch\n\n\ndef run(x):\n    return torch.matmul(x, x)\n")
    module = load_module("perfci_test_variant", str(path))
    with pytest.raises(RuntimeError) as raised:
        module.run(torch.ones(2, 3))
    assert describe(raised.value).endswith(" (variant.py:5)")
    with pytest.raises(TypeError) as refused:
        module.run()
    assert "(test_inputs.py:" in describe(refused.value)


def test_a_reference_that_cannot_be_imported_is_named(tmp_path: Path) -> None:
    text = "import nowhere\n" + scratch.REFERENCE
    folder = scratch.write_kernel(tmp_path, reference__py=text)
    (kernel,) = discover(tmp_path / "kernels")
    with pytest.raises(ConfigurationError) as raised:
        load_reference(kernel)
    words = "cannot be imported: ModuleNotFoundError: No module named 'nowhere' (reference.py:1)"
    assert str(raised.value) == f"{folder}/reference.py: {words}"


def test_bytes_are_those_of_the_elements_of_tensors() -> None:
    assert count_bytes([]) == 0
    wide = torch.zeros(4, 8, dtype=torch.float64)
    assert count_bytes([wide[:, ::2], torch.zeros(3, dtype=torch.float16), 2.5]) == 4 * 4 * 8 + 6
