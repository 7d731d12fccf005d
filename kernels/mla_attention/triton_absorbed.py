# perfci: devices = ["cuda"]
# perfci: compiles = true
# perfci: max = { head_dim = 128, rank = 128 }
"""Attention on the latents in one Triton program for 16 queries of a head; see absorbed.cu.

w_up_k and the scale are folded into the queries once; then the latents go by in tiles of positions,
for the logits and for the weighted sum, with a running maximum and sum; w_up_v is applied to that
sum. All sums are float32, without TF32. Traffic: both weight slices and the latents up to its last
query once a program, q and the output once. Limits: head_dim and rank 128, since blocks of the
weights hold all of both, and contiguous float32 inputs.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

QUERIES, POSITIONS = 16, 32
LARGEST, MOST_PROGRAMS = 128, 2**31 - 1
SIZES = {
    "q": ("batch", "sequence", "heads", "head_dim"),
    "kv_latent": ("batch", "sequence", "rank"),
    "w_up_k": ("rank", "heads", "head_dim"),
    "w_up_v": ("rank", "heads", "head_dim"),
}


@triton.jit
def _attend(
    q,
    kv_latent,
    w_up_k,
    w_up_v,
    out,
    sequence,
    heads,
    head_dim,
    rank,
    scale,
    QUERIES: tl.constexpr,
    POSITIONS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    RANK: tl.constexpr,
):
    # All in one dimension: the others of a grid have 65535 programs at most.
    groups = tl.cdiv(sequence, QUERIES)
    first, pair = tl.program_id(0) % groups * QUERIES, tl.program_id(0) // groups
    batch, head = pair // heads, pair % heads
    query, d = first + tl.arange(0, QUERIES), tl.arange(0, HEAD_DIM)
    r = tl.arange(0, RANK).to(tl.int64)  # times a row, it may not fit into 32 bits
    row = (batch.to(tl.int64) * sequence + query[:, None]) * heads + head
    q_mask = (query[:, None] < sequence) & (d < head_dim)
    up_mask = (r[:, None] < rank) & (d < head_dim)
    up_offset = (r[:, None] * heads + head) * head_dim + d

    own = tl.load(q + row * head_dim + d, mask=q_mask, other=0.0)
    up_k = tl.load(w_up_k + up_offset, mask=up_mask, other=0.0)
    # The scale goes in here: a logit that is scaled later may be rounded differently where it is
    # compared and where it is subtracted, by enough to matter at logits of 1e10.
    folded = tl.dot(own, tl.trans(up_k), input_precision="ieee") * scale

    largest = tl.full((QUERIES,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((QUERIES,), dtype=tl.float32)
    weighted = tl.zeros((QUERIES, RANK), dtype=tl.float32)
    latents = kv_latent + batch.to(tl.int64) * sequence * rank
    for start in range(0, min(first + QUERIES, sequence), POSITIONS):
        position = start + tl.arange(0, POSITIONS)
        latent_mask = (position[:, None] < sequence) & (r < rank)
        latent = tl.load(
            latents + position[:, None].to(tl.int64) * rank + r, mask=latent_mask, other=0.0
        )
        logits = tl.dot(folded, tl.trans(latent), input_precision="ieee")
        logits = tl.where(position <= query[:, None], logits, float("-inf"))
        before = largest
        largest = tl.maximum(before, tl.max(logits, axis=1))
        shrink = tl.exp(before - largest)
        weights = tl.exp(logits - largest[:, None])
        total = total * shrink + tl.sum(weights, axis=1)
        weighted = tl.dot(weights, latent, weighted * shrink[:, None], input_precision="ieee")

    up_v = tl.load(w_up_v + up_offset, mask=up_mask, other=0.0)
    attended = tl.dot(weighted / total[:, None], up_v, input_precision="ieee")
    tl.store(out + row * head_dim + d, attended, mask=q_mask)


def _read_sizes(inputs: dict[str, Tensor]) -> dict[str, int]:
    """The sizes by name; ValueError for tensors that will not do."""
    sizes: dict[str, int] = {}
    for name, tensor in inputs.items():
        if tensor.dtype != torch.float32:
            raise ValueError(f"{name} must be float32")
        if tensor.dim() != len(SIZES[name]):
            raise ValueError(f"{name} has {tensor.dim()} dimensions, must have {len(SIZES[name])}")
        for dimension, (key, size) in enumerate(zip(SIZES[name], tensor.shape, strict=True)):
            if sizes.setdefault(key, size) != size:
                must = f"in dimension {dimension}, must have {sizes[key]}"
                raise ValueError(f"{name} has size {size} {must}")
        if not tensor.is_contiguous():
            raise ValueError(f"{name} must be contiguous")
    return sizes


def _check_devices(inputs: dict[str, Tensor]) -> None:
    """ValueError for what is not on the current GPU, on which Triton launches."""
    for name, tensor in inputs.items():
        if not tensor.is_cuda:
            raise ValueError(f"{name} is on {tensor.device}, this variant takes tensors on cuda")
        if tensor.get_device() != (current := torch.cuda.current_device()):
            must = f"the current device is cuda:{current}; change it"
            raise ValueError(f"{name} is on {tensor.device}, {must}")


def run(q: Tensor, kv_latent: Tensor, w_up_k: Tensor, w_up_v: Tensor) -> Tensor:
    """Attend; the output has the shape of q."""
    inputs = {"q": q, "kv_latent": kv_latent, "w_up_k": w_up_k, "w_up_v": w_up_v}
    sizes = _read_sizes(inputs)
    for name in ("head_dim", "rank"):
        if sizes[name] > LARGEST:
            raise ValueError(f"{name} is {sizes[name]}, at most {LARGEST}")
    _check_devices(inputs)
    batch, sequence, heads, head_dim = q.shape
    rank = sizes["rank"]
    out = torch.empty_like(q)
    if out.numel() > 0:
        programs = triton.cdiv(sequence, QUERIES) * batch * heads
        if programs > MOST_PROGRAMS:
            raise ValueError(f"needs {programs} programs, a launch takes at most {MOST_PROGRAMS}")
        _attend[(programs,)](
            q,
            kv_latent,
            w_up_k,
            w_up_v,
            out,
            sequence,
            heads,
            head_dim,
            rank,
            head_dim**-0.5,
            QUERIES=QUERIES,
            POSITIONS=POSITIONS,
            HEAD_DIM=max(16, triton.next_power_of_2(head_dim)),
            RANK=max(16, triton.next_power_of_2(rank)),
        )
    return out
