"""A process that calls one variant and judges nothing: ``python -m perfci.tools.caller FILE``.

It is meant to be watched by a tool: no reference and no other kernel runs on the device, inputs
are drawn on the CPU and copied there. perfci.tools.calls has the form of the file and of what is
said.
"""

import faulthandler
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from perfci.build import Build
from perfci.checking.check import REFUSALS, is_sound, synchronise
from perfci.checking.inputs import (
    Arguments,
    Reference,
    as_tuple,
    describe,
    draw_inputs,
    load_reference,
)
from perfci.entry import Call, Entry, load_entry
from perfci.kernel import Case, Kernel, discover
from perfci.shortage import is_shortage
from perfci.tools.calls import Calls, Ending, read_calls, tell, tell_end

_WARM_UPS = 3


def main(path: Path) -> None:
    """Make the calls that a file asks for, in order, until one leaves the device unusable."""
    calls = read_calls(path)
    kernel = next(each for each in discover(Path(calls.kernels)) if each.name == calls.kernel)
    # Before any code of the variant's, so that a tool has seen CUDA whatever becomes of it.
    synchronise(calls.device)
    try:
        entry = load_entry(_build(calls, kernel))
    except Exception as error:  # noqa: BLE001 — a variant's import may raise anything
        for name in calls.cases:
            tell(name, Ending.RAISED, f"cannot be loaded: {describe(error)}")
        tell_end()
        return
    reference = load_reference(kernel)
    for case in (each for each in kernel.cases if each.name in calls.cases):
        tell(case.name)
        # The process may hang where no signal handler of Python's would ever run.
        faulthandler.dump_traceback_later(calls.limit_s, exit=True)
        ending, message = _make(calls, entry, reference, case)
        faulthandler.cancel_dump_traceback_later()
        tell(case.name, ending, message)
        if not is_sound(calls.device):
            return
    tell_end()


def _build(calls: Calls, kernel: Kernel) -> Build:
    variant = next(each for each in kernel.variants if each.name == calls.variant)
    library = Path(calls.library) if calls.library else None
    return Build(variant=variant, digest=calls.digest, library=library)


def _make(calls: Calls, entry: Entry, reference: Reference, case: Case) -> tuple[Ending, str]:
    """Make one case's call; how it ended, and the variant's words where it was refused."""
    try:
        with torch.no_grad():
            call = _bound(calls.device, entry, reference, case)
            if calls.profiled:
                _profile(calls.device, call)
            else:
                call()
                synchronise(calls.device)
    except REFUSALS as error:
        layout_matters = case.layout != "contiguous" and not is_shortage(error)
        refused = layout_matters and is_sound(calls.device)
        return Ending.REFUSED if refused else Ending.RAISED, describe(error)
    except Exception as error:  # noqa: BLE001 — a variant's call may raise anything
        return Ending.RAISED, describe(error)
    return Ending.CALLED, ""


def _profile(device: str, call: Call) -> None:
    for _ in range(_WARM_UPS):
        call()
    synchronise(device)
    torch.cuda.profiler.start()
    call()
    synchronise(device)
    torch.cuda.profiler.stop()


def _bound(device: str, entry: Entry, reference: Reference, case: Case) -> Call:
    drawn = draw_inputs(reference, case, device="cpu", seed=0)
    given = {
        name: _copied(value, device) if isinstance(value, Tensor) else value
        for name, value in drawn.items()
    }
    outputs: Sequence[Tensor] = ()
    if entry.writes_outputs:
        outputs = [
            torch.empty(each.shape, dtype=each.dtype, device=device)
            for each in _templates(reference, drawn)
        ]
    return entry.bind(given, outputs)


def _copied(value: Tensor, device: str) -> Tensor:
    """A tensor on the device in the same layout, gaps included: each byte of it is copied there."""
    whole = value.as_strided((value.untyped_storage().nbytes() // value.itemsize,), (1,), 0)
    return whole.to(device).as_strided(value.shape, value.stride(), value.storage_offset())


def _templates(reference: Reference, drawn: Arguments) -> tuple[Tensor, ...]:
    """Tensors of the outputs' shapes and dtypes; on the CPU where shapes alone will not do."""
    shapes = {
        name: value.to("meta") if isinstance(value, Tensor) else value
        for name, value in drawn.items()
    }
    try:
        return as_tuple(reference.reference(*shapes.values()))
    except Exception:  # noqa: BLE001 — what a reference does without data is its own affair
        return as_tuple(reference.reference(*drawn.values()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
