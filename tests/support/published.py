"""Runs programs that are written for PyTorch with PyTorch, and with GT in two ways.

A program is a file in `programs/published`. It says by `report` what is compared, and by `weights`
which modules begin with the same values in all runs. GT runs it with `import gt as torch`
("native"), or as the device "cluster" of PyTorch.
"""

import random
import re
import sys
import types
import warnings
from pathlib import Path

import numpy as np

PROGRAMS = sorted((Path(__file__).parent.parent / "programs" / "published").glob("*.py"))
#: Programs that no device but the CPU runs, by what they need of it.
ON_CPU = {
    "earlier_habits": "torch.FloatTensor is a tensor on the CPU",
    "graph_convolutions": "the device has no sparse tensors",
    "graphs": "torch.FloatTensor is a tensor on the CPU",
    "modes": "torch.get_rng_state is that of the CPU",
}
#: The programs, and the ways in which GT runs them.
RUNS = [(program, "native") for program in PROGRAMS]
RUNS += [(program, "cluster") for program in PROGRAMS if program.stem not in ON_CPU]

_reported, _weights = [], {}


def _unchanged(value):
    return value


#: Makes the value that a module loads of an array: PyTorch's modules load tensors alone.
_loaded = _unchanged
#: The folder that the program that runs may write to.
folder = types.SimpleNamespace(path=None)


def report(*values):
    """Report values of a program: tensors, arrays, numbers and texts, and containers of them."""
    _reported.extend(_flat(values))


def weights(model, name="model"):
    """Return a module, with the values that the module of this name had in the first run."""
    if name in _weights:
        model.load_state_dict({key: _loaded(value) for key, value in _weights[name].items()})
    else:
        state = model.state_dict().items()
        _weights[name] = {key: np.array(value.detach().cpu()) for key, value in state}
    return model


def run_with_both(program, way, path):
    """Run a program with PyTorch and in one of GT's ways; return what each has reported."""
    _weights.clear()
    folder.path = path
    source = program.read_text()
    wanted = _run(program.stem, source)
    if way == "native":
        return wanted, _run(program.stem, translated(source))
    return wanted, _run_on_cluster(program.stem, source)


def _run_on_cluster(name, source):
    """Run a program with PyTorch, on the device instead of the CPU."""
    global _loaded
    import torch

    source = source.replace('"cpu"', '"cluster"')
    # Unlike `as_tensor`, it makes tensors on the CPU, whatever the default device.
    source = source.replace("torch.from_numpy(", "torch.as_tensor(")
    _loaded = torch.as_tensor
    try:
        with torch.device("cluster"):
            return _run(name, source)
    finally:
        _loaded = _unchanged


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
