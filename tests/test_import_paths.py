"""Every module that users have imported keeps its name, wherever its file is."""

import importlib
import subprocess
import sys
from pathlib import Path

import gt
import pytest
from processes import run_python

#: The public modules before those of PyTorch's API moved to `python/gt/_compat`, without those that
#: need another package.
MODULES = (Path(__file__).parent / "import_paths.txt").read_text().split()


@pytest.mark.parametrize("name", MODULES)
def test_the_module_has_its_name(name):
    module = importlib.import_module(name)
    assert module.__name__ in MODULES


@pytest.mark.parametrize("name", [name for name in MODULES if name.count(".") == 1])
def test_the_module_is_an_attribute_of_gt(name):
    module = importlib.import_module(name)
    assert getattr(gt, name.removeprefix("gt.")) is module


@pytest.mark.parametrize("name", [name for name in MODULES if name.count(".") == 1])
def test_the_module_may_be_the_first_to_be_imported(name):
    done = run_python(f"import {name}; {name}")
    assert (done.returncode, done.stderr) == (0, "")


def test_names_of_pytorch_are_found_at_their_first_use():
    for name in gt.__all__:
        getattr(gt, name)
    assert {"backends", "distributions", "nn", "utils"} <= set(dir(gt))


@pytest.mark.parametrize("name", ["gt._compat", "gt._compat.nn", "gt._compat.optim.adam"])
def test_no_module_has_a_second_name(name):
    with pytest.raises(ImportError, match=r"imported as gt\.nn, gt\.optim"):
        importlib.import_module(name)


def test_type_checkers_find_every_module_of_the_roof():
    python = Path(gt.__file__).parent.parent
    for name in MODULES:
        path = name.removeprefix("gt.").replace(".", "/")
        if (python / "gt/_compat" / path).with_suffix(".py").is_file():
            assert (python / "gt-stubs" / path / "__init__.pyi").is_file(), name


IMPORT_BOTH = """
import gt, sys, threading
failures = []
def touch(name):
    try:
        getattr(gt, name)
    except BaseException as error:
        failures.append((name, error))
threads = [threading.Thread(target=touch, args=(name,)) for name in sys.argv[1:]]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
sys.exit(repr(failures) if failures else 0)
"""


@pytest.mark.parametrize("pair", [("nn", "optim"), ("errors", "utils"), ("client", "errors")])
def test_two_threads_may_import_at_the_same_time(pair):
    command = [sys.executable, "-c", IMPORT_BOTH, *pair]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


IMPORT_WHILE_IMPORTING = """
import faulthandler, importlib, sys, threading
faulthandler.dump_traceback_later(50, exit=True)
names, failures = sys.argv[1:], []
def load(name):
    # Python itself cannot find modules of a package before the first line of its file has run.
    while name != names[0] and not hasattr(sys.modules.get("gt"), "_Finder"):
        pass
    try:
        module = importlib.import_module(name)
        assert module is sys.modules[name] and not module.__spec__._initializing
    except BaseException as error:
        failures.append((name, error))
threads = [threading.Thread(target=load, args=(name,)) for name in names]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
import gt
gt.nn.Linear(2, 2), gt.optim.SGD, gt.autograd.Function
sys.exit(repr(failures) if failures else 0)
"""

AT_ONCE = [
    ("gt.nn", "gt.optim"),
    ("gt.optim", "gt.nn.functional", "gt.utils.data"),
    ("gt", "gt.autograd.function", "gt.func.tree", "gt.signal"),
    ("gt", "gt.safetensors", "gt.amp", "gt.checkpoint", "gt.session.session"),
]


@pytest.mark.parametrize("run", range(5))
@pytest.mark.parametrize("names", AT_ONCE, ids=" ".join)
def test_threads_import_modules_while_another_imports_gt(names, run):
    command = [sys.executable, "-c", IMPORT_WHILE_IMPORTING, *names]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
