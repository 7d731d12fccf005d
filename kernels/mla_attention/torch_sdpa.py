# perfci: peer = true
# perfci: dtypes = ["float32", "bfloat16", "float16"]
"""Keys and values by two matrix products, then scaled_dot_product_attention, causal.

Keys and values go through memory once; where PyTorch has a fused attention for the dtype and the
head's size, the logits do not.
"""

from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention


def _check_sizes(q: Tensor, kv_latent: Tensor, w_up_k: Tensor, w_up_v: Tensor) -> None:
    """Refuse what PyTorch would broadcast or reshape without a word."""
    up = (*kv_latent.shape[2:], *q.shape[2:])
    for name, sizes, needed in (
        ("kv_latent", kv_latent.shape[:2], q.shape[:2]),
        ("w_up_k", w_up_k.shape, up),
        ("w_up_v", w_up_v.shape, up),
    ):
        if sizes != needed:
            raise ValueError(f"{name} has sizes {tuple(sizes)}, must have {tuple(needed)}")


def run(q: Tensor, kv_latent: Tensor, w_up_k: Tensor, w_up_v: Tensor) -> Tensor:
    """Attend; the output has the shape of q."""
    _check_sizes(q, kv_latent, w_up_k, w_up_v)
    batch, sequence, heads, head_dim = q.shape
    rank = kv_latent.shape[2]
    latent = kv_latent.reshape(batch * sequence, rank)
    keys, values = (
        (latent @ w_up.reshape(rank, heads * head_dim)).view(q.shape).transpose(1, 2)
        for w_up in (w_up_k, w_up_v)
    )
    attended = scaled_dot_product_attention(q.transpose(1, 2), keys, values, is_causal=True)
    return attended.transpose(1, 2).contiguous()
