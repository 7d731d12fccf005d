"""How a variant is called: what crosses into C, in which order, and what comes back."""

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import scratch
import torch
from torch import Tensor

from perfci.build import Build
from perfci.declaration import Declaration
from perfci.entry import _DTYPE_CODES, ABI_VERSION, KernelError, load_entry
from perfci.kernel import Kind, Variant
from perfci.toolchain import INCLUDE

_ECHO = """\
#include <perfci.h>

/* Writes what it is given into one int64 output, and refuses where told to. */
extern "C" int perfci_run(const perfci_call *call) {
  int64_t *out = (int64_t *)call->outputs[0].data;
  *out++ = call->abi_version;
  *out++ = call->output_count;
  *out++ = call->input_count;
  *out++ = call->scalar_count;
  *out++ = call->stream == NULL;
  *out++ = call->outputs[0].rank;
  *out++ = call->outputs[0].dtype;
  for (int32_t i = 0; i < call->input_count; ++i) {
    const perfci_tensor *each = &call->inputs[i];
    *out++ = each->rank;
    *out++ = each->dtype;
    *out++ = perfci_is_contiguous(each);
    for (int32_t d = 0; d < each->rank; ++d) {
      *out++ = each->shape[d];
      *out++ = each->strides[d];
    }
  }
  for (int32_t i = 0; i < call->scalar_count; ++i) {
    *out++ = call->scalars[i].integer;
    *out++ = (int64_t)(1000 * call->scalars[i].real);
  }
  if (call->scalar_count && call->scalars[0].integer == 13)
    return perfci_fail(call, "%s: %d of %s", "unlucky", 13, LONG);
  if (call->scalar_count && call->scalars[0].integer == 14) return 14;
  return 0;
}
"""


def _loaded(
    kind: Kind,
    *,
    library: Path | None = None,
    path: Path | None = None,
    devices: tuple[str, ...] = ("cpu",),
    **more: Any,
) -> Any:
    variant = Variant(
        kernel="echo",
        name="plain",
        kind=kind,
        path=path,
        declaration=Declaration(devices=devices),
        **more,
    )
    return load_entry(Build(variant=variant, digest="d" * 64, library=library))


def _compiled(folder: Path, source: str) -> Path:
    (folder / "echo.cpp").write_text(source)
    flags = ["-shared", "-fPIC", f"-I{INCLUDE}", '-DLONG="' + "x" * 2000 + '"']
    library = folder / "echo.so"
    subprocess.run(["g++", *flags, folder / "echo.cpp", "-o", library], check=True)
    return library


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _compiled(tmp_path_factory.mktemp("entry"), _ECHO)


@pytest.fixture(scope="module")
def echo(library: Path) -> Any:
    return _loaded("c", library=library)


@pytest.fixture(scope="module")
def echo_of_two_devices(library: Path) -> Any:
    """As though the device without memory were one that it can be called for."""
    return _loaded("c", library=library, devices=("cpu", "meta"))


def _told(echo: Any, arguments: Mapping[str, Any]) -> list[int]:
    out = torch.full((60,), -1)
    returned = echo.bind(arguments, (out,))()
    assert returned == (out,)
    numbers: list[int] = out.tolist()
    return numbers


def _starts_with(numbers: Sequence[int], *expected: int) -> bool:
    return list(numbers[: len(expected)]) == list(expected)


def test_arguments_cross_in_order_with_shapes_and_strides(echo: Any) -> None:
    wide = torch.zeros(2, 6, dtype=torch.bfloat16)
    told = _told(
        echo,
        {
            "n": 3,
            "x": wide[:, ::2],
            "scale": 2.5,
            "y": torch.ones(4),
            "flag": True,
            "s": torch.tensor(1),
        },
    )
    head = (ABI_VERSION, 1, 3, 3, 1, 1, 7)
    x, y, s = (2, 3, 0, 2, 6, 3, 2), (1, 0, 1, 4, 1), (0, 7, 1)
    assert _starts_with(told, *head, *x, *y, *s, 3, 3000, 2, 2500, 1, 1000)


def test_a_view_is_passed_as_it_lies(echo: Any) -> None:
    told = _told(echo, {"x": torch.zeros(3, 2, 1, dtype=torch.int8).transpose(0, 1)})
    assert _starts_with(told[7:], 3, 4, 0, 2, 1, 3, 2, 1, 1)
    told = _told(echo, {"x": torch.zeros(1, 5)[:, :4].expand(1, 4)})
    assert _starts_with(told[7:], 2, 0, 1, 1, 5, 4, 1)


def test_there_may_be_no_arguments(echo: Any) -> None:
    assert _starts_with(_told(echo, {}), ABI_VERSION, 1, 0, 0, 1, 1, 7, -1)


def test_a_scalar_that_is_no_number_has_a_reading_all_the_same(echo: Any) -> None:
    told = _told(echo, {"bias": float("-inf")})
    assert told[7] == 0


def test_a_kernel_that_refuses_says_why(echo: Any) -> None:
    with pytest.raises(KernelError) as raised:
        _told(echo, {"n": 13})
    assert re.fullmatch("unlucky: 13 of x{900,1023}", str(raised.value))
    with pytest.raises(KernelError, match=r"^the kernel failed without saying why$"):
        _told(echo, {"n": 14})
    assert _told(echo, {"n": 1})[7] == 1


def test_a_number_without_an_integer_reading_is_zero_there(echo: Any) -> None:
    for value in (float("nan"), 1e300, -(2.0**63) * 2):
        assert _told(echo, {"x": value})[7] == 0


def test_an_integer_that_c_cannot_hold_is_refused(echo: Any) -> None:
    assert _told(echo, {"n": -(2**63)})[7] == -(2**63)
    for value in (2**63, -(2**63) - 1, 10**400):
        with pytest.raises(KernelError, match=rf"^n is {value}, an integer has 64 bits at most$"):
            _told(echo, {"n": value})


def test_what_is_neither_tensor_nor_number_is_named(echo: Any) -> None:
    with pytest.raises(KernelError, match=r"^x is a list, neither a tensor nor a number$"):
        _told(echo, {"n": 1, "x": [1.0]})


def test_a_tensor_on_a_device_that_the_variant_is_not_for_is_named(echo: Any) -> None:
    elsewhere = torch.ones(2, device="meta")
    out = torch.empty(60, dtype=torch.int64)
    message = r"^y is on meta, this variant takes tensors on cpu$"
    with pytest.raises(KernelError, match=message):
        echo.bind({"x": torch.ones(2), "n": 1, "y": elsewhere}, (out,))
    with pytest.raises(KernelError, match=r"^output is on meta, this variant takes tensors on cpu"):
        echo.bind({"x": torch.ones(2)}, (out.to("meta"),))
    with pytest.raises(KernelError, match=r"^output 1 is on meta, "):
        echo.bind({"output": torch.ones(2)}, (out, out.to("meta")))


def test_tensors_on_more_than_one_device_are_refused(echo_of_two_devices: Any) -> None:
    here, elsewhere = torch.ones(2), torch.ones(2, device="meta")
    with pytest.raises(KernelError, match=r"^y is on meta, x on cpu; move one of them$"):
        echo_of_two_devices.bind({"x": here, "y": elsewhere}, ())
    with pytest.raises(KernelError, match=r"^output is on cpu, x on meta; move one of them$"):
        echo_of_two_devices.bind({"x": elsewhere}, (here,))


def test_a_view_whose_memory_has_the_other_sign_is_refused(echo: Any) -> None:
    negated = torch.ones(2, dtype=torch.complex64).conj().imag
    with pytest.raises(KernelError, match=r"^x is a negated view, .*; clone it$"):
        _told(echo, {"x": negated})
    assert _told(echo, {"x": negated.clone()})[2] == 1


def test_a_dtype_that_the_header_lacks_is_named(echo: Any) -> None:
    with pytest.raises(KernelError, match=r"^x: perfci\.h has no code for torch\.complex64$"):
        echo.bind({"x": torch.zeros(1, dtype=torch.complex64)}, ())


def test_dtypes_have_the_codes_of_the_header() -> None:
    text = (INCLUDE / "perfci.h").read_text()
    enum = dict(re.findall(r"PERFCI_(\w+) = (\d+)", text))
    assert {
        str(dtype).removeprefix("torch.").upper(): str(code) for dtype, code in _DTYPE_CODES.items()
    } == enum
    assert re.search(r"#define PERFCI_ABI_VERSION (\d+)", text)[1] == str(ABI_VERSION)


def test_a_library_without_the_symbol_is_refused(tmp_path: Path) -> None:
    library = _compiled(tmp_path, "int other() { return 0; }\n")
    with pytest.raises(KernelError, match=r'^defines no perfci_run; write extern "C" int'):
        _loaded("c", library=library)


def test_a_file_and_a_function_take_what_the_reference_takes(tmp_path: Path) -> None:
    path = tmp_path / "eager.py"
    path.write_text(scratch.EAGER)
    x = torch.ones(2)
    call = _loaded("python", path=path).bind({"x": x, "a": 2.0, "b": 1.0}, ())
    returned: Tensor = call()
    assert returned.tolist() == [3.0, 3.0]
    call = _loaded("function", function="math:fsum").bind({"x": [1, 2]}, ())
    assert call() == 3
    path.write_text("run = 5\n")
    with pytest.raises(KernelError, match="has no function 'run'"):
        _loaded("python", path=path)
    with pytest.raises(AttributeError, match="nowhere"):
        _loaded("function", function="math:nowhere")
