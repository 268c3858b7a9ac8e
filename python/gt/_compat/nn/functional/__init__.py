"""Activations, losses, normalizations and layers as functions."""

from gt._public import show_callers
from gt.ops.registry import namespace

from . import (  # noqa: F401
    activation,
    attention,
    binary,
    classification,
    ctc,
    dropouts,
    embeddings,
    folding,
    images,
    linears,
    loss,
    margin,
    multi_head,
    normalization,
    padding,
    pooling,
    smooth,
    unpooling,
)

globals().update(namespace("gt.nn.functional"))

__all__ = sorted(namespace("gt.nn.functional"))

show_callers(globals())
