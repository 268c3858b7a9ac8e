"""The transformer (Vaswani et al., 2017) and its encoder and decoder."""

from __future__ import annotations

import copy
from typing import Any

import gt
from gt._gt import Tensor
from gt.nn import functional, init

from .activation import ReLU
from .containers import ModuleList
from .module import Module
from .normalization import LayerNorm
from .smooth_activation import GELU
from .transformer_layers import (
    Activation,
    TransformerDecoderLayer,
    TransformerEncoderLayer,
)


def _copies(module: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


class TransformerEncoder(Module):
    """A stack of copies of an encoder layer.

    Args:
        encoder_layer: the layer to copy.
        num_layers: the number of copies.
        norm: a normalization of the result, or None.
        enable_nested_tensor: whether padding in the result is zero where PyTorch skips it. PyTorch
            skips it in evaluation without gradients, if the layer is `batch_first` and not
            `norm_first`, has biases, an even number of heads and "relu" or "gelu", and the only
            mask is a key padding mask with its padding at the end of each row. GT computes the
            padding, then sets it to zero before `norm`. Otherwise it keeps its computed values.
        mask_check: accepted as in PyTorch; padding that is not at the end of rows is always
            computed.
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ):
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check
        self.use_nested_tensor = enable_nested_tensor and _leaves_out_padding(encoder_layer)

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Pass a sequence through all layers; masks are as in the layer."""
        x = src
        for layer in self.layers:
            x = layer(
                x,
                src_mask=mask,
                is_causal=bool(is_causal),
                src_key_padding_mask=src_key_padding_mask,
            )
        if src_key_padding_mask is not None and mask is None and self._is_fast(src):
            x = gt.where(_padding_at_the_end(src_key_padding_mask), 0, x)
        return x if self.norm is None else self.norm(x)

    def _is_fast(self, src: Tensor) -> bool:
        """Return whether PyTorch would skip the padding."""
        first = self.layers[0]
        trained = any(each.requires_grad for each in (src, *first.parameters()))
        return (
            self.use_nested_tensor
            and not first.training
            and src.ndim == 3
            and not gt.is_autocast_enabled()
            and not (gt.is_grad_enabled() and trained)
        )


def _leaves_out_padding(layer: Module) -> bool:
    """Return whether PyTorch can skip the padding in a layer."""
    if not isinstance(layer, TransformerEncoderLayer) or layer.norm_first:
        return False
    attention, activation = layer.self_attn, layer.activation
    return (
        attention.batch_first
        and attention.in_proj_bias is not None
        and attention.num_heads % 2 == 0
        and layer.norm1.eps == layer.norm2.eps
        and (
            activation in (functional.relu, functional.gelu) or isinstance(activation, (ReLU, GELU))
        )
    )


def _padding_at_the_end(mask: Tensor) -> Tensor:
    """Return True at padding, with one more axis; False everywhere if any is not at a row's end."""
    padded = mask if mask.dtype == gt.bool else mask != 0
    is_at_end = (padded[:, 1:] | ~padded[:, :-1]).all()
    return (padded & is_at_end).unsqueeze(-1)


class TransformerDecoder(Module):
    """A stack of copies of a decoder layer.

    Args:
        decoder_layer: the layer to copy.
        num_layers: the number of copies.
        norm: a normalization of the result, or None.
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None):
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Pass a target through all layers; masks are as in the layer."""
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=bool(tgt_is_causal),
                memory_is_causal=memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """A transformer: an encoder and a decoder.

    Args:
        d_model: the width of the inputs and the result.
        nhead: the number of heads.
        num_encoder_layers: the number of layers of the encoder.
        num_decoder_layers: the number of layers of the decoder.
        dim_feedforward: the width between the linear layers.
        dropout: the dropout probability.
        activation: "relu", "gelu" or a function.
        custom_encoder: replaces the default encoder.
        custom_decoder: replaces the default decoder.
        layer_norm_eps: `eps` of the layer norms.
        batch_first: whether tensors are (batch, length, width), instead of (length, batch, width).
        norm_first: whether layer norms apply to sublayers' inputs instead of to residual sums.
        bias: whether linear layers and norms have biases.
        device: accepted as in PyTorch; every device is the cluster.
        dtype: the parameters' dtype.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = functional.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        kind = {"device": device, "dtype": dtype}
        options = (nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        more = (batch_first, norm_first, bias)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **kind)

        if custom_encoder is None:
            layer = TransformerEncoderLayer(d_model, *options, *more, **kind)
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, norm())
        self.encoder = custom_encoder
        if custom_decoder is None:
            other = TransformerDecoderLayer(d_model, *options, *more, **kind)
            custom_decoder = TransformerDecoder(other, num_decoder_layers, norm())
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the decoder's result for a source and a target; masks are as in the layers."""
        batch_axis = 0 if self.batch_first else 1
        if src.dim() == 3 and src.shape[batch_axis] != tgt.shape[batch_axis]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src,
            mask=src_mask,
            src_key_padding_mask=src_key_padding_mask,
            is_causal=src_is_causal,
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """Return the causal mask: -inf above the diagonal, zero elsewhere."""
        return gt.triu(gt.full((sz, sz), float("-inf"), dtype=dtype), diagonal=1)
