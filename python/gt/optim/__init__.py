"""Optimizers, with PyTorch's definitions, defaults and state names."""

from gt.optim import lr_scheduler, swa_utils
from gt.optim.adafactor import Adafactor
from gt.optim.adagrad import Adadelta, Adagrad, RMSprop
from gt.optim.adam import Adam, AdamW
from gt.optim.adam_variants import Adamax, NAdam, RAdam, SparseAdam
from gt.optim.lbfgs import LBFGS
from gt.optim.muon import Muon
from gt.optim.optimizer import Optimizer
from gt.optim.rprop import Lion, Rprop
from gt.optim.sgd import ASGD, SGD

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lion",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "lr_scheduler",
    "swa_utils",
]
