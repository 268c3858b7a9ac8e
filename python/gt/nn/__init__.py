"""Modules, losses and activations for neural networks."""

from gt.nn import functional
from gt.nn.activations import (
    GELU,
    Identity,
    LogSoftmax,
    ReLU,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Tanh,
)
from gt.nn.functional import (
    binary_cross_entropy,
    cross_entropy,
    cross_entropy_loss,
    dropout,
    gelu,
    log_softmax,
    mse_loss,
    relu,
    sigmoid,
    silu,
    softmax,
    softplus,
    tanh,
)
from gt.nn.layers import Dropout, Flatten, Linear
from gt.nn.losses import BCELoss, CrossEntropyLoss, MSELoss
from gt.nn.module import Module, ModuleList, Parameter, Sequential
from gt.optim import SGD, Adam, AdamW

__all__ = [
    "Adam",
    "AdamW",
    "BCELoss",
    "CrossEntropyLoss",
    "Dropout",
    "Flatten",
    "GELU",
    "Identity",
    "Linear",
    "LogSoftmax",
    "MSELoss",
    "Module",
    "ModuleList",
    "Parameter",
    "ReLU",
    "SGD",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "Tanh",
    "binary_cross_entropy",
    "cross_entropy",
    "cross_entropy_loss",
    "dropout",
    "functional",
    "gelu",
    "log_softmax",
    "mse_loss",
    "relu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "tanh",
]
