# perfci: peer = true
# perfci: dtypes = ["float32", "bfloat16", "float16"]
"""scaled_dot_product_attention on the latents: w_up_k folded into q, w_up_v into the output.

All heads attend to one latent sequence, which is key and value at once, so keys and values are
never formed. A position costs 2 x rank multiply-adds a head instead of 2 x head_dim: cheaper only
where rank is the smaller. In bfloat16 and float16 the folded query and the weighted latent are
rounded, where otherwise keys and values are.
"""

import torch
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
    heads, head_dim = q.shape[2:]
    folded = torch.einsum("bthd,rhd->bhtr", q, w_up_k)
    shared = kv_latent.unsqueeze(1).expand(-1, heads, -1, -1)
    latent = scaled_dot_product_attention(
        folded, shared, shared, is_causal=True, scale=head_dim**-0.5
    )
    return torch.einsum("bhtr,rhd->bthd", latent, w_up_v).contiguous()
