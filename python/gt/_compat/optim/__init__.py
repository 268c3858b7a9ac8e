"""Optimizers, with PyTorch's definitions, defaults and state names."""

# Whole packages first: two threads that import a package's modules in another order would meet
# one that is half imported.
import gt.nn  # noqa: F401
from gt._paths import add_modules
from gt._public import show_callers

from . import lr_scheduler, swa_utils
from .adafactor import Adafactor
from .adagrad import Adadelta, Adagrad, RMSprop
from .adam import Adam, AdamW
from .adam_variants import Adamax, NAdam, RAdam, SparseAdam
from .lbfgs import LBFGS
from .muon import Muon
from .optimizer import Optimizer
from .rprop import Lion, Rprop
from .sgd import ASGD, SGD

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

add_modules(
    __name__,
    {
        "adadelta": "gt.optim.adagrad",
        "adamax": "gt.optim.adam_variants",
        "adamw": "gt.optim.adam",
        "asgd": "gt.optim.sgd",
        "nadam": "gt.optim.adam_variants",
        "radam": "gt.optim.adam_variants",
        "rmsprop": "gt.optim.adagrad",
        "sparse_adam": "gt.optim.adam_variants",
    },
)
show_callers(globals())
