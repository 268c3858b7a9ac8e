"""Runs programs that are written for PyTorch with PyTorch, and with `import gt as torch`.

A program is a file in `programs/published`. It says by `report` what is compared, and by `weights`
which modules begin with the same values in both runs.
"""

import random
import re
import sys
import types
import warnings
from pathlib import Path

import numpy as np

PROGRAMS = sorted((Path(__file__).parent.parent / "programs" / "published").glob("*.py"))

_reported, _weights = [], {}
#: The folder that the program that runs may write to.
folder = types.SimpleNamespace(path=None)


def report(*values):
    """Report values of a program: tensors, arrays, numbers and texts, and containers of them."""
    _reported.extend(_flat(values))


def weights(model, name="model"):
    """Return a module, with the values that the module of this name had in the first run."""
    if name in _weights:
        model.load_state_dict(_weights[name])
    else:
        state = model.state_dict().items()
        _weights[name] = {key: np.array(value.detach().cpu()) for key, value in state}
    return model


def run_with_both(program, path):
    """Run a program with PyTorch and with GT; return what each has reported."""
    _weights.clear()
    folder.path = path
    source = program.read_text()
    return _run(program.stem, source), _run(program.stem, translated(source))


def translated(source):
    """Return a program with GT in the place of PyTorch, in its imports alone."""
    source = re.sub(r"^import torch$", "import gt as torch", source, flags=re.M)
    source = re.sub(r"^import torch\.(\S+)( as \w+)?$", r"import gt.\1\2", source, flags=re.M)
    return re.sub(r"^from torch(\.\S+)? import", r"from gt\1 import", source, flags=re.M)


def _run(name, source):
    _reported.clear()
    random.seed(0)
    np.random.seed(0)
    # The classes of a program are found by the name of its module.
    module = sys.modules[name] = types.ModuleType(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(source, f"{name}.py", "exec"), module.__dict__)
    return list(_reported)


def _flat(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _flat(item)]
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    return value.ravel().tolist() if isinstance(value, np.ndarray) else [value]
