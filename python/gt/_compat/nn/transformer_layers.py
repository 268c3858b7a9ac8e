"""The layers of a transformer (Vaswani et al., 2017)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gt._gt import Tensor
from gt.nn import functional

from .attention import MultiheadAttention
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

Activation = str | Callable[[Tensor], Tensor]


def _activation(given: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(given, str):
        return given
    if given not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {given}")
    return getattr(functional, given)


class _Layer(Module):
    """The common base of encoder and decoder layers: attentions, then two linear layers."""

    def _make(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout: float,
        bias: bool,
        layer_norm_eps: float,
        batch_first: bool,
        norm_first: bool,
        activation: Activation,
        attentions: tuple[str, ...],
        kind: dict[str, Any],
    ) -> None:
        if nhead > 0 and d_model % nhead:
            raise AssertionError(
                f"d_model must be divisible by nhead, got d_model={d_model} and nhead={nhead}"
            )
        for name in attentions:
            attention = MultiheadAttention(
                d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **kind
            )
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **kind)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **kind)
        self.norm_first = norm_first
        count = len(attentions) + 1
        for number in range(1, count + 1):
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **kind)
            setattr(self, f"norm{number}", norm)
        for number in range(1, count + 1):
            setattr(self, f"dropout{number}", Dropout(dropout))
        self.activation = _activation(activation)

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def _added(self, x: Tensor, number: int, part: Callable[[Tensor], Tensor]) -> Tensor:
        """Add the result of a sublayer to its input, normalized before or after."""
        norm, drop = getattr(self, f"norm{number}"), getattr(self, f"dropout{number}")
        if self.norm_first:
            return x + drop(part(norm(x)))
        return norm(x + drop(part(x)))


class TransformerEncoderLayer(_Layer):
    """A layer of self-attention and two linear layers.

    Args:
        d_model: the width of the input and the result.
        nhead: the number of heads.
        dim_feedforward: the width between the linear layers.
        dropout: the dropout probability.
        activation: "relu", "gelu" or a function.
        layer_norm_eps: `eps` of the layer norms.
        batch_first: whether tensors are (batch, length, width), instead of (length, batch, width).
        norm_first: whether layer norms apply to sublayers' inputs instead of to residual sums.
        bias: whether linear layers and norms have biases.
        device: accepted as in PyTorch; every device is the cluster.
        dtype: the parameters' dtype.
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = functional.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        kind = {"device": device, "dtype": dtype}
        sizes = (d_model, nhead, dim_feedforward, dropout, bias, layer_norm_eps)
        self._make(*sizes, batch_first, norm_first, activation, ("self_attn",), kind)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Return the layer's result.

        Args:
            src: (length, batch, width), (batch, length, width) with `batch_first`, or (length,
                width) without a batch.
            src_mask: (length, length): bools that are True at keys to ignore, or floats that are
                added to the scores.
            src_key_padding_mask: (batch, length): bools or floats as in `src_mask`.
            is_causal: a hint that `src_mask` is the causal mask.
        """

        def attend(x: Tensor) -> Tensor:
            return self.self_attn(
                x,
                x,
                x,
                attn_mask=src_mask,
                key_padding_mask=src_key_padding_mask,
                need_weights=False,
                is_causal=is_causal,
            )[0]

        return self._added(self._added(src, 1, attend), 2, self._feed_forward)


class TransformerDecoderLayer(_Layer):
    """A layer of self-attention, attention to an encoder's result, and two linear layers.

    The arguments are those of `TransformerEncoderLayer`.
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = functional.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        kind = {"device": device, "dtype": dtype}
        sizes = (d_model, nhead, dim_feedforward, dropout, bias, layer_norm_eps)
        names = ("self_attn", "multihead_attn")
        self._make(*sizes, batch_first, norm_first, activation, names, kind)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the result for a target and an encoder's result; masks as in the encoder layer."""

        def attend(x: Tensor) -> Tensor:
            return self.self_attn(
                x,
                x,
                x,
                attn_mask=tgt_mask,
                key_padding_mask=tgt_key_padding_mask,
                is_causal=tgt_is_causal,
                need_weights=False,
            )[0]

        def attend_to_memory(x: Tensor) -> Tensor:
            return self.multihead_attn(
                x,
                memory,
                memory,
                attn_mask=memory_mask,
                key_padding_mask=memory_key_padding_mask,
                is_causal=memory_is_causal,
                need_weights=False,
            )[0]

        x = self._added(tgt, 1, attend)
        x = self._added(x, 2, attend_to_memory)
        return self._added(x, 3, self._feed_forward)
