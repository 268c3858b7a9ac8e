"""The modules of `gt.nn` under PyTorch's paths, such as `gt.nn.modules.batchnorm`."""

import sys
from importlib import import_module

import gt.nn
from gt._paths import add_modules
from gt.nn import *  # noqa: F403
from gt.nn.states import IncompatibleKeys

from . import utils  # type: ignore[no-redef]  # noqa: F401

__all__ = [name for name in gt.nn.__all__ if isinstance(getattr(gt.nn, name), type)]

add_modules(
    __name__,
    {
        "activation": "gt.nn.activation gt.nn.smooth_activation gt.nn.softmax gt.nn.attention",
        "adaptive": "gt.nn.adaptive_softmax",
        "batchnorm": "gt.nn.batch_normalization",
        "channelshuffle": "gt.nn.pixels",
        "container": "gt.nn.containers gt.nn.parameter_containers",
        "conv": "gt.nn.convolution gt.nn.transposed_convolution gt.nn.lazy_convolution "
        f"{__name__}.utils",
        "distance": "gt.nn.distance",
        "dropout": "gt.nn.dropout",
        "flatten": "gt.nn.flatten",
        "fold": "gt.nn.folding",
        "instancenorm": "gt.nn.instance_normalization",
        "lazy": "gt.nn.lazy",
        "linear": "gt.nn.linear gt.nn.attention",
        "loss": "gt.nn.loss gt.nn.classification_loss gt.nn.margin_loss",
        "module": "gt.nn.module gt.nn.states gt.nn.hooks",
        "normalization": "gt.nn.normalization",
        "padding": f"gt.nn.padding {__name__}.utils",
        "pixelshuffle": "gt.nn.pixels",
        "pooling": f"gt.nn.pooling gt.nn.adaptive_pooling {__name__}.utils",
        "rnn": "gt.nn.recurrent gt.nn.recurrent_cells",
        "sparse": "gt.nn.sparse",
        "transformer": "gt.nn.transformer gt.nn.transformer_layers",
        "upsampling": "gt.nn.upsampling",
    },
)


def _addindent(s_: str, numSpaces: int) -> str:
    """Return a text whose lines after the first are indented."""
    return s_.replace("\n", "\n" + " " * numSpaces)


def _add_private_names() -> None:
    """Add names that programs import although they are private in PyTorch."""
    sys.modules[f"{__name__}.module"].__dict__.update(
        _addindent=_addindent, _IncompatibleKeys=IncompatibleKeys
    )
    sys.modules[f"{__name__}.transformer"].__dict__.update(
        _get_clones=import_module("gt.nn.transformer")._copies
    )


_add_private_names()
