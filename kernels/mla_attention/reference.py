"""Causal attention whose keys and values are up-projections of a compressed latent.

For head h and query t, over the positions s <= t: ``k_s = kv_latent[b, s] @ w_up_k[:, h]``, ``v_s``
likewise, logits ``(q_t . k_s) x head_dim^-1/2``, softmax over s, output ``sum of p_s v_s``.
"""

import torch
from torch import Tensor


def make_inputs(
    *,
    batch: int,
    sequence: int,
    heads: int,
    head_dim: int,
    rank: int,
    dtype: torch.dtype,
    device: torch.device | str,
    generator: torch.Generator,
) -> dict[str, Tensor | int | float]:
    """Draw unscaled standard-normal inputs.

    Shapes: q (batch, sequence, heads, head_dim), kv_latent (batch, sequence, rank), w_up_k and
    w_up_v (rank, heads, head_dim).
    """

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=dtype, device=device, generator=generator)

    return {
        "q": normal(batch, sequence, heads, head_dim),
        "kv_latent": normal(batch, sequence, rank),
        "w_up_k": normal(rank, heads, head_dim),
        "w_up_v": normal(rank, heads, head_dim),
    }


def reference(q: Tensor, kv_latent: Tensor, w_up_k: Tensor, w_up_v: Tensor) -> Tensor:
    """Attend; the output has the shape of q."""
    keys = torch.einsum("bsr,rhd->bshd", kv_latent, w_up_k)
    values = torch.einsum("bsr,rhd->bshd", kv_latent, w_up_v)
    weights = torch.softmax(_masked_logits(q, keys), dim=-1)
    return torch.einsum("bhts,bshd->bthd", weights, values)


def _masked_logits(q: Tensor, keys: Tensor) -> Tensor:
    """Scaled logits (batch, heads, query, position), minus infinity where position > query."""
    logits = torch.einsum("bthd,bshd->bhts", q, keys) * q.shape[-1] ** -0.5
    return logits.masked_fill(_future(q), float("-inf"))


def _future(q: Tensor) -> Tensor:
    """The mask (query, position) of the positions that a query may not see."""
    sequence = q.shape[1]
    return torch.ones(sequence, sequence, dtype=torch.bool, device=q.device).triu(1)


def magnitude(q: Tensor, kv_latent: Tensor, w_up_k: Tensor, w_up_v: Tensor) -> Tensor:
    """Sum what bounds the error of each output element, to first order in the unit round-off u.

    Two things add up. The values are sums, off by u times ``|kv_latent| @ |w_up_v|`` and weighted
    by p. The weights are off because the logits are: a logit that is off by e moves the output by
    ``p_s (v_s - o) e``. Here e is u times ``|q| . (|kv_latent| @ |w_up_k|) x scale`` for the sums
    behind the logit, plus its distance from the row's maximum, which is rounded before the
    exponential, plus 1 for the exponential itself.

    First order means that u times the logit's magnitude must be well below 1. Beyond that (the
    cases with large inputs) the softmax is the choice of one position; the sum then holds as long
    as rounding does not change the choice.
    """
    q, kv_latent, w_up_k, w_up_v = (each.double() for each in (q, kv_latent, w_up_k, w_up_v))
    keys = torch.einsum("bsr,rhd->bshd", kv_latent, w_up_k)
    values = torch.einsum("bsr,rhd->bshd", kv_latent, w_up_v)
    key_terms = torch.einsum("bsr,rhd->bshd", kv_latent.abs(), w_up_k.abs())
    value_terms = torch.einsum("bsr,rhd->bshd", kv_latent.abs(), w_up_v.abs())

    logits = _masked_logits(q, keys)
    weights = torch.softmax(logits, dim=-1)
    below_maximum = (logits.amax(dim=-1, keepdim=True) - logits).masked_fill(_future(q), 0.0)
    logit_terms = torch.einsum("bthd,bshd->bhts", q.abs(), key_terms) * q.shape[-1] ** -0.5
    sensitivity = weights * (logit_terms + below_maximum + 1.0)

    total = torch.einsum("bhts,bshd->bthd", weights, value_terms)
    output = torch.einsum("bhts,bshd->bthd", weights, values)
    for position in range(q.shape[1]):
        distance = (values[:, position : position + 1] - output).abs()
        total += sensitivity[..., position].transpose(1, 2).unsqueeze(-1) * distance
    return total


def depth(*, sequence: int, head_dim: int, rank: int, **_: object) -> int:
    """Count the roundings that one term can meet: sums over rank, head_dim and positions."""
    return rank + head_dim + sequence


def bytes_moved(
    *, batch: int, sequence: int, heads: int, head_dim: int, rank: int, dtype: torch.dtype
) -> int:
    """Count the bytes of each input read once and the output written once."""
    tokens, width = batch * sequence, heads * head_dim
    return (2 * tokens * width + tokens * rank + 2 * rank * width) * dtype.itemsize


def flops(*, batch: int, sequence: int, heads: int, head_dim: int, rank: int, **_: object) -> int:
    """Count two operations a multiply-add.

    The projections cost the same whether keys and values are formed, or folded into the query and
    the output; the attention itself then runs over head_dim or over rank, of which the smaller
    counts. Only positions at or before the query count. The exponentials are not counted.
    """
    projections = 2 * batch * sequence * rank * heads * head_dim
    pairs = batch * heads * sequence * (sequence + 1) // 2
    return 2 * (projections + 2 * pairs * min(head_dim, rank))
