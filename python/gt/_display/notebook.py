"""The notebook whose kernel this process is, if it is one."""

import sys
from collections.abc import Callable
from typing import Any, Protocol


class Displayable(Protocol):
    """What notebooks show as HTML."""

    def _repr_html_(self) -> str: ...


def shell() -> Any:
    """Return IPython's shell, or None in other programs."""
    ipython = sys.modules.get("IPython")
    # A thread may be importing it at this moment.
    get = getattr(ipython, "get_ipython", None)
    return get() if get is not None else None


def is_notebook() -> bool:
    """Whether this process shows HTML: it runs IPython's shell, and not on a terminal."""
    return not is_terminal() and shell() is not None


def is_terminal() -> bool:
    """Whether this process runs IPython's shell on a terminal."""
    kinds = type(shell()).__mro__
    return any(kind.__name__ == "TerminalInteractiveShell" for kind in kinds)


def show(shown: Displayable) -> None:
    """Show an object as HTML in a notebook; print it elsewhere."""
    if is_notebook():
        from IPython.display import display

        bundle = {"text/plain": str(shown), "text/html": shown._repr_html_()}
        display(bundle, raw=True)
    else:
        print(shown)


def display_live(bundle: dict[str, str]) -> Any:
    """Show texts by MIME type, and return the handle that updates them."""
    from IPython.display import display

    return display(bundle, raw=True, display_id=True)


def running_cell() -> frozenset[str]:
    """Return what identifies the cell that runs: its text, and its id if the notebook sends it."""
    parent: dict[str, Any] = getattr(shell(), "get_parent", dict)()
    names = {parent.get("metadata", {}).get("cellId")}
    history = getattr(shell(), "history_manager", None)
    names.update(history.input_hist_raw[-1:] if history is not None else ())
    return frozenset(name for name in names if name)


def before_each_cell(call: Callable[[frozenset[str]], None]) -> None:
    """Have a function called with what identifies a cell before each cell that runs."""
    if call in _CALLS:
        return
    _CALLS.append(call)
    shell().events.register("pre_run_cell", _before_cell)


#: The functions to call before each cell.
_CALLS: list[Callable[[frozenset[str]], None]] = []


def _before_cell(info: Any) -> None:
    names = (info.raw_cell, getattr(info, "cell_id", None))
    for call in _CALLS:
        call(frozenset(name for name in names if name))
