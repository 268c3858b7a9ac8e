"""Transformer layers that PyTorch runs as a single operator when autograd is off."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from gt.torch.kernels import raw


@raw("_nested_tensor_from_mask_left_aligned")
def is_left_aligned(t, mask) -> bool:
    """Return False, so that PyTorch does not continue with nested tensors."""
    return False


def _hidden(mask: torch.Tensor | None, mask_type: int | None, scores: torch.Tensor):
    """Expand a mask to the scores: type 0 masks pairs, 1 keys, 2 has the shape of scores."""
    if mask is None:
        return None
    if mask_type == 1:
        mask = mask.reshape(mask.shape[0], 1, 1, mask.shape[-1])
    return mask.bool().expand(scores.shape)


@raw("_masked_softmax")
def masked_softmax(self, mask, dim=None, mask_type=None):
    hidden = _hidden(mask, mask_type, self)
    return torch.softmax(self.masked_fill(hidden, float("-inf")), -1 if dim is None else dim)


@raw("_native_multi_head_attention")
def native_multi_head_attention(
    query,
    key,
    value,
    embed_dim,
    num_head,
    qkv_weight,
    qkv_bias,
    proj_weight,
    proj_bias,
    mask=None,
    need_weights=True,
    average_attn_weights=True,
    mask_type=None,
):
    weights, biases = qkv_weight.chunk(3), qkv_bias.chunk(3)

    def heads(of, at):
        projected = F.linear(of, weights[at], biases[at])
        return projected.unflatten(-1, (num_head, -1)).transpose(1, 2)

    queries, keys, values = (heads(of, at) for at, of in enumerate((query, key, value)))
    scores = queries @ keys.transpose(-2, -1) / (embed_dim // num_head) ** 0.5
    hidden = _hidden(mask, mask_type, scores)
    if hidden is not None:
        scores = scores.masked_fill(hidden, float("-inf"))
    shares = torch.softmax(scores, -1)
    found = F.linear((shares @ values).transpose(1, 2).flatten(-2), proj_weight, proj_bias)
    if not need_weights:
        return found, None
    return found, shares.mean(1) if average_attn_weights else shares


@raw("_transformer_encoder_layer_fwd")
def transformer_encoder_layer(
    src,
    embed_dim,
    num_heads,
    qkv_weight,
    qkv_bias,
    proj_weight,
    proj_bias,
    use_gelu,
    norm_first,
    eps,
    norm_weight_1,
    norm_bias_1,
    norm_weight_2,
    norm_bias_2,
    ffn_weight_1,
    ffn_bias_1,
    ffn_weight_2,
    ffn_bias_2,
    mask=None,
    mask_type=None,
):
    def attend(x):
        return native_multi_head_attention(
            x,
            x,
            x,
            embed_dim,
            num_heads,
            qkv_weight,
            qkv_bias,
            proj_weight,
            proj_bias,
            mask,
            need_weights=False,
            mask_type=mask_type,
        )[0]

    def feed(x):
        inner = F.linear(x, ffn_weight_1, ffn_bias_1)
        return F.linear(F.gelu(inner) if use_gelu else F.relu(inner), ffn_weight_2, ffn_bias_2)

    def first(x):
        return F.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def second(x):
        return F.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    if norm_first:
        src = src + attend(first(src))
        return src + feed(second(src))
    src = first(src + attend(src))
    return second(src + feed(src))
