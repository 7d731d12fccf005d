"""What one more call of a timed variant shows: what its compiler chose; on a GPU more of it."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from perfci.binary.inductor import find_generated
from perfci.binary.jit import find_configurations
from perfci.binary.ptxas import read_log
from perfci.build import Build, compiler_words
from perfci.checking.inputs import count_bytes
from perfci.entry import Call, Entry
from perfci.gpu.launches import find_launches
from perfci.history.model import Metric
from perfci.outcome import Outcome


def add_footprint(
    outcome: Outcome,
    call: Call,
    *,
    entry: Entry,
    build: Build,
    outputs: Sequence[Tensor],
    on_gpu: bool,
) -> Outcome:
    """The outcome with what calls on the current device show. ``outputs`` are of their sizes.

    The call has been timed; whatever it raises goes through.
    """
    if build.variant.declaration.compiles:
        outcome = replace(outcome, identity=(*outcome.identity, *find_generated(call)))
    if not on_gpu:
        return outcome
    memory = find_memory(call, outputs, writes_outputs=entry.writes_outputs)
    configurations = find_configurations(call, entry.namespace)
    return replace(
        outcome,
        metrics=(*outcome.metrics, *memory),
        identity=(*outcome.identity, *configurations),
        launches=find_launches(call, read_log(compiler_words(build))),
    )


def find_memory(
    call: Call, outputs: Sequence[Tensor], *, writes_outputs: bool
) -> tuple[Metric, ...]:
    """The most bytes that a call asks PyTorch's allocator for at once, with and without outputs.

    Where the call is given what it writes to (``writes_outputs``), its outputs are added.
    """
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before_bytes = torch.cuda.memory_stats()["requested_bytes.all.current"]
    returned = call()
    torch.cuda.synchronize()
    asked_bytes = torch.cuda.memory_stats()["requested_bytes.all.peak"] - before_bytes
    del returned  # until now, so that it counts however the call came by it
    output_bytes = count_bytes(outputs)
    workspace_bytes = max(0, asked_bytes - (0 if writes_outputs else output_bytes))
    figures = {
        "peak_memory_bytes": workspace_bytes + output_bytes,
        "workspace_bytes": workspace_bytes,
    }
    return tuple(Metric(name=name, value=value, unit="B") for name, value in figures.items())
