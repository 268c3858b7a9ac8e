"""Activations, losses, normalizations and layers as functions."""

from gt.nn.functional import (  # noqa: F401
    activation,
    attention,
    binary,
    classification,
    ctc,
    dropouts,
    embeddings,
    linears,
    loss,
    margin,
    normalization,
    smooth,
)
from gt.ops import namespace

globals().update(namespace("gt.nn.functional"))

__all__ = sorted(namespace("gt.nn.functional"))
