"""The name of the program that runs, by which its sessions are recognized."""

import builtins
import os
import sys


def program_name() -> str:
    """Return the name of the script, module or notebook that runs.

    Returns:
        For `python train.py`, `train.py`; for `python -m pkg.mod`, `pkg.mod`; for `python -c`,
        `-c`; for a notebook, the name of its file if that is known, or `notebook`; for an
        interactive interpreter, `python`.
    """
    main = sys.modules.get("__main__")
    if hasattr(builtins, "get_ipython"):
        return _notebook(main)
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name and spec.name != "__main__":
        return spec.name.removesuffix(".__main__")
    file = getattr(main, "__file__", None)
    # A program that is read from standard input has `<stdin>`.
    if file and not file.startswith("<"):
        return os.path.basename(file.rstrip(os.sep)) or "python"
    first = sys.argv[0] if getattr(sys, "argv", None) else ""
    return "-c" if first == "-c" else "python"


def _notebook(main: object) -> str:
    """Return the name of the notebook that this kernel runs; `python` for IPython's terminal."""
    if "ipykernel" not in sys.modules:
        return "python"
    # VS Code sets a variable of the notebook, Jupyter one of the environment.
    path = getattr(main, "__vsc_ipynb_file__", None) or os.environ.get("JPY_SESSION_NAME", "")
    name = os.path.basename(str(path))
    # A console has a name without a file's ending.
    return name if "." in name else "notebook"
