"""`SummaryWriter`, of the installed package that writes files for TensorBoard."""

from __future__ import annotations

import contextlib
import functools
import importlib
from typing import Any

from gt._gt import Tensor
from gt.func.tree import mapped

__all__ = ["SummaryWriter"]


def _writer_class() -> Any:
    """Return the class that writes: of tensorboardX, or of PyTorch with tensorboard.

    Raises:
        ImportError: neither is installed.
    """
    for package in ("tensorboardX", "torch.utils.tensorboard"):
        with contextlib.suppress(ImportError):
            return importlib.import_module(package).SummaryWriter
    raise ImportError(
        "SummaryWriter: no package that writes files for TensorBoard is installed\n"
        "  hint: pip install tensorboardX"
    )


class SummaryWriter:
    """A writer of files for TensorBoard, which takes tensors of GT wherever it takes arrays.

    It has the methods of the writer of tensorboardX, or else of PyTorch with tensorboard.

    Args:
        *args: the arguments of that writer, such as the folder.
        **kwargs: the arguments of that writer by name.

    Raises:
        ImportError: neither is installed.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        self._writer = _writer_class()(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_writer":
            raise AttributeError(name)
        found = getattr(self._writer, name)
        if not callable(found):
            return found

        @functools.wraps(found)
        def method(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = mapped(_as_array, (args, kwargs))
            return found(*args, **kwargs)

        return method

    def add_graph(self, model: Any, *args: Any, **kwargs: Any) -> None:
        """Raise NotImplementedError: modules are not traced to graphs."""
        raise NotImplementedError(
            "add_graph: GT does not trace modules to graphs\n  hint: leave it out; print(model) "
            "shows the modules, and gt.debug.explain what a function computes"
        )

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self._writer.close()


def _as_array(value: Any) -> Any:
    """Return a tensor's values as an array, in float32 for bfloat16; others stay."""
    if not isinstance(value, Tensor):
        return value
    value = value.detach()
    return (value.float() if value.dtype.name == "bfloat16" else value).numpy()
