"""Extensions of other packages: when they are loaded, and what happens if that fails."""

import sys

from processes import run_python

PACKAGE = """
import sys, pathlib
folder = pathlib.Path(sys.argv[1]) / "einops"
folder.mkdir()
(folder / "__init__.py").write_text("from einops import _backends")
(folder / "_backends.py").write_text(sys.argv[2])
sys.path.insert(0, sys.argv[1])
"""


def test_gt_imports_no_package_for_them():
    code = "import gt, sys; print(*{name.partition('.')[0] for name in sys.modules})"
    imported = set(run_python(code).stdout.split())
    assert not imported & {"einops", "polars", "pyarrow", "tensorboard", "tensorboardX", "torch"}


def test_a_package_that_is_too_different_is_imported_with_a_warning(tmp_path):
    code = PACKAGE + "import gt, einops; print(einops._backends.value)"
    done = run_python(code, str(tmp_path), "value = 3")
    assert (done.returncode, done.stdout) == (0, "3\n")
    assert "einops cannot be extended for tensors of gt: AttributeError" in done.stderr


def test_an_import_that_fails_may_be_repeated(tmp_path):
    code = (
        PACKAGE
        + """
import gt
try:
    import einops
except ZeroDivisionError:
    (folder / "_backends.py").write_text("class AbstractBackend: pass")
import einops
print(einops._backends.GtBackend.framework_name)
"""
    )
    done = run_python(code, str(tmp_path), "1 / 0", PYTHONDONTWRITEBYTECODE="1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "gt\n", "")


def test_an_extended_module_has_its_own_loader(tmp_path):
    code = PACKAGE + (
        "import gt, einops._backends as module, inspect\n"
        "print(type(module.__loader__).__name__, module.__spec__.loader is module.__loader__)\n"
        "print(inspect.getsource(module))"
    )
    done = run_python(code, str(tmp_path), "class AbstractBackend: pass")
    assert done.stdout.splitlines()[0] == "SourceFileLoader True"
    assert "class AbstractBackend: pass" in done.stdout


def test_the_code_of_an_extended_module_is_found_without_its_import(tmp_path):
    code = PACKAGE + (
        "import gt, importlib.util\n"
        "(folder / '__init__.py').write_text('')\n"
        "spec = importlib.util.find_spec('einops._backends')\n"
        "print(spec.loader.get_code(spec.name).co_names, spec.name in sys.modules)"
    )
    done = run_python(code, str(tmp_path), "class AbstractBackend: pass")
    assert (done.stdout, done.stderr) == ("('AbstractBackend',) False\n", "")


def test_there_is_one_finder():
    from gt.integrations import Finder

    assert sum(isinstance(finder, Finder) for finder in sys.meta_path) == 1
