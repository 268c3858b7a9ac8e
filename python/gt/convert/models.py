"""The model that tensors are compared with, which the command line names."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

from gt import nn
from gt.convert.errors import ConvertError


class Wanted(NamedTuple):
    """The names, shapes and ties that a model expects."""

    model: str
    shapes: dict[str, tuple[int, ...]]
    #: Maps the names of tied parameters to the first name of the same parameter.
    tied: dict[str, str]


def what_a_model_has(model: Any, config: dict[str, Any] | None) -> Wanted:
    """Return the names, shapes and ties of a model's state.

    Args:
        model: a `Module`; a function or class that creates one from a configuration; or its
            location, as `folder/file.py:Name` or `package.module:Name`.
        config: the contents of config.json; None without one.

    Raises:
        ConvertError: the model is not found, or cannot be created.
    """
    made = find(model) if isinstance(model, str) else model
    if not isinstance(made, nn.Module):
        made = _make(made, config, model)
    shapes = {name: tuple(value.shape) for name, value in made.state_dict().items()}
    first: dict[int, str] = {}
    tied = {}
    for name, parameter in made.named_parameters(remove_duplicate=False):
        other = first.setdefault(id(parameter), name)
        if other != name:
            tied[name] = other
    return Wanted(type(made).__name__, shapes, tied)


def find(place: str) -> Any:
    """Return the object at `folder/file.py:Name` or `package.module:Name`."""
    where, colon, name = place.rpartition(":")
    if not colon or not where or not name:
        raise ConvertError(
            f"--model {place}: expected a file or a module, a colon and a name, such as "
            "examples/models/qwen3.py:Qwen3 or package.module:Name"
        )
    module = _module_of_file(where) if where.endswith(".py") else _module(where)
    if not hasattr(module, name):
        models = [
            n for n, v in vars(module).items() if _is_model(v) and v.__module__ == module.__name__
        ]
        raise ConvertError(
            f"--model {place}: {where} has no {name}; its models are {', '.join(models) or 'none'}"
        )
    return getattr(module, name)


def _is_model(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, nn.Module)


def _module(name: str) -> Any:
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConvertError(
            f"--model {name}: it cannot be imported: {error}\n  hint: name a file, such as "
            "folder/file.py:Name, or start in the folder that the package is in"
        ) from error


def _module_of_file(path: str) -> Any:
    if not os.path.isfile(path):
        raise ConvertError(f"--model {path}: there is no such file")
    folder = os.path.dirname(os.path.abspath(path))
    name = f"_model_{os.path.basename(path)[:-3]}"  # Does not clash with importable modules.
    # As when the file is run, it can import modules from its own folder.
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # Dataclasses look up the names in annotations there.
    spec.loader.exec_module(module)
    return module


def _make(factory: Any, config: dict[str, Any] | None, told: Any) -> nn.Module:
    """Call a model's class or function, with the configuration in the form that it takes."""
    if not callable(factory):
        raise ConvertError(f"--model {told}: it is a {type(factory).__name__}, expected a model")
    try:
        made = factory(*_arguments(factory, config))
    except ConvertError:
        raise
    except Exception as error:
        raise ConvertError(
            f"--model {told}: it cannot be created from config.json: {type(error).__name__}: "
            f"{error}\n  hint: it is called with the dict, or with from_dict(dict) of the class "
            "that its first argument is annotated with"
        ) from error
    if not isinstance(made, nn.Module):
        raise ConvertError(f"--model {told}: it returns a {type(made).__name__}, expected a Module")
    return made


def _arguments(factory: Callable[..., Any], config: dict[str, Any] | None) -> list[Any]:
    """Return the arguments of a model: the configuration in the form that it takes, or none."""
    parameters = list(inspect.signature(factory).parameters.values())
    needs = [p for p in parameters if p.default is p.empty and p.kind in _POSITIONAL]
    if not parameters or (config is None and not needs):
        return []
    if config is None:
        raise ConvertError(
            f"--model: {factory.__name__} takes a configuration, but the source has no config.json"
            "\n  hint: put one beside the weights, or call gt.convert.convert(..., model=a_model)"
        )
    function = factory.__init__ if isinstance(factory, type) else factory  # type: ignore[misc]
    hints: dict[str, Any] = typing.get_type_hints(function)
    kind = hints.get(parameters[0].name)
    return [kind.from_dict(config) if kind and hasattr(kind, "from_dict") else config]


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
