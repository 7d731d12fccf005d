"""A variant of a shipped kernel, loaded, to be tried on small arguments, good ones and bad."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import misfits
import torch
from torch import Tensor

from perfci.checking.inputs import Arguments, load_reference
from perfci.entry import Entry
from perfci.kernel import Kernel, Variant, discover

KERNELS = {kernel.name: kernel for kernel in discover(Path(__file__).parents[2] / "kernels")}
PAIRS = [(kernel.name, each) for kernel in KERNELS.values() for each in kernel.variants]


def is_cpp(variant: Variant) -> bool:
    return variant.path is not None and variant.path.suffix == ".cpp"


def is_cuda(variant: Variant) -> bool:
    return variant.path is not None and variant.path.suffix == ".cu"


def is_triton(variant: Variant) -> bool:
    return variant.kind == "python" and not variant.declaration.peer


def is_peer(variant: Variant) -> bool:
    return variant.declaration.peer


def named(*wanted: Callable[[Variant], bool]) -> list[tuple[str, str]]:
    """The names of kernel and variant of all that are of one of some kinds."""
    return [(kernel, each.name) for kernel, each in PAIRS if any(is_one(each) for is_one in wanted)]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A loaded variant and where its tensors are to be."""

    kernel: Kernel
    entry: Entry
    device: str = "cpu"

    def draw(self, **changes: int) -> dict[str, Any]:
        """Good arguments of small sizes, or of others by name."""
        generator = torch.Generator(device=self.device).manual_seed(1)
        sizes = misfits.SHAPES[self.kernel.name]
        drawn = load_reference(self.kernel).make_inputs(
            **{axis: changes.get(axis, size) for axis, size in sizes.items()},
            dtype=torch.float32,
            device=self.device,
            generator=generator,
        )
        return dict(drawn)

    def output(self, **changes: int) -> Tensor:
        """Room for the output of such arguments, poisoned."""
        sizes = {**misfits.SHAPES[self.kernel.name], **changes}
        shape = [sizes.get(axis, axis) for axis in misfits.OUTPUT_AXES[self.kernel.name]]
        return torch.full(shape, float("nan"), device=self.device)

    def run(self, arguments: Arguments, output: Tensor) -> Tensor:
        """What the variant computes; a C variant writes it to the output."""
        returned = self.entry.bind(arguments, (output,))()
        return output if self.entry.writes_outputs else returned

    def expect(self, arguments: Arguments) -> Tensor:
        """What must be computed, from the reference in float64."""
        exact = load_reference(self.kernel).reference(
            *(each.double() if isinstance(each, Tensor) else each for each in arguments.values())
        )
        assert isinstance(exact, Tensor)
        return exact.float()

    def assert_right(self, arguments: Arguments, output: Tensor) -> None:
        """Run, and compare."""
        assert_close(self.run(arguments, output), self.expect(arguments))


def assert_close(output: Tensor, expected: Tensor) -> None:
    """Equal but for float32's rounding, which goes by the largest terms of the sums."""
    largest = float(expected.abs().max()) if expected.numel() else 0.0
    torch.testing.assert_close(output, expected, rtol=1e-4, atol=1e-4 * max(1.0, largest))
