"""Multi-head attention as a module."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator, Sequence
from typing import Any

import gt
from gt._gt import Tensor
from gt.nn import functional, init

from .linear import Linear
from .module import Module
from .parameter import Parameter


class SDPBackend(enum.IntEnum):
    """Implementations of attention, by PyTorch's names, for `sdpa_kernel`."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(
    backends: SDPBackend | Sequence[SDPBackend], set_priority: bool = False
) -> Iterator[None]:
    """Check the names, with no other effect: the engine chooses the attention kernel.

    >>> with gt.nn.attention.sdpa_kernel(gt.nn.attention.SDPBackend.MATH):
    ...     x = gt.ones(1, 2, 4)
    """
    given = [backends] if isinstance(backends, SDPBackend) else list(backends)
    if not given or not all(isinstance(each, SDPBackend) for each in given):
        raise TypeError(f"sdpa_kernel: backends is {backends!r}, expected one or more SDPBackend")
    yield


class NonDynamicallyQuantizableLinear(Linear):
    """A linear layer, under the class name that PyTorch's attention shows in its repr."""


class MultiheadAttention(Module):
    """Multi-head attention (Vaswani et al., 2017).

    Args:
        embed_dim: the width of query and result, a multiple of `num_heads`.
        num_heads: the number of heads.
        dropout: the probability of dropping an attention weight in training mode.
        bias: whether projections have biases.
        add_bias_kv: whether to append a trained key and value.
        add_zero_attn: whether to append a key and value of zeros.
        kdim: the width of keys, `embed_dim` by default.
        vdim: the width of values, `embed_dim` by default.
        batch_first: whether tensors are (batch, length, width), instead of (length, batch, width).
        device: accepted as in PyTorch; every device is the cluster.
        dtype: the parameters' dtype.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ):
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, got embed_dim="
                f"{embed_dim} and num_heads={num_heads} instead"
            )
        if embed_dim % num_heads:
            raise AssertionError(
                f"embed_dim must be divisible by num_heads, got embed_dim={embed_dim} and "
                f"num_heads={num_heads}"
            )
        super().__init__()
        kind = {"device": device, "dtype": dtype}
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.dropout, self.batch_first = dropout, batch_first

        def weight(*shape: int) -> Parameter:
            return Parameter(gt.empty(*shape, **kind))

        if self._qkv_same_embed_dim:
            self.in_proj_weight = weight(3 * embed_dim, embed_dim)
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = weight(embed_dim, embed_dim)
            self.k_proj_weight = weight(embed_dim, self.kdim)
            self.v_proj_weight = weight(embed_dim, self.vdim)
            self.register_parameter("in_proj_weight", None)
        self.register_parameter("in_proj_bias", weight(3 * embed_dim) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **kind)
        for name in ("bias_k", "bias_v"):
            self.register_parameter(name, weight(1, 1, embed_dim) if add_bias_kv else None)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            parameter = getattr(self, name)
            if parameter is not None:
                init.xavier_uniform_(parameter)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for parameter in (self.bias_k, self.bias_v):
            if parameter is not None:
                init.xavier_normal_(parameter)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the result of attention, and the attention weights or None.

        Args:
            query: (length, batch, width), (batch, length, width) with `batch_first`, or (length,
                width) without a batch.
            key: in the same layout as the query.
            value: in the same layout as the query.
            key_padding_mask: (batch, keys): bools that are True at keys to ignore, or floats that
                are added to the scores.
            need_weights: whether to return the attention weights.
            attn_mask: (queries, keys) or (batch * heads, queries, keys): bools or floats as in
                `key_padding_mask`.
            average_attn_weights: whether the returned weights are averaged over heads.
            is_causal: a hint that `attn_mask` is the causal mask.
        """
        swaps = self.batch_first and query.dim() == 3
        if swaps:
            same_key, same_value = key is query, value is key
            query = query.transpose(0, 1)
            key = query if same_key else key.transpose(0, 1)
            value = key if same_value else value.transpose(0, 1)
        result, weights = functional.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (result.transpose(0, 1) if swaps else result), weights
