"""Nested tuples, lists and dicts of tensors (*trees*), as arguments and results of functions."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from gt._gt import Tensor, is_foreign
from gt.ops.foreign import to_tensor
from gt.session.session import Session


@dataclass(frozen=True)
class Structure:
    """A tree without its leaves: its container type (None for a leaf), keys and children."""

    container: type | None
    keys: tuple[Any, ...] = ()
    children: tuple["Structure", ...] = ()

    def __str__(self) -> str:
        if self.container is None:
            return "*"
        inner = (
            f"{key!r}: {child}" if self.keys else str(child)
            for key, child in zip(self.keys or self.children, self.children, strict=True)
        )
        return f"{self.container.__name__}({', '.join(inner)})"


LEAF = Structure(None)


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """Return the leaves in order, and the structure. All but containers are leaves, also None."""
    keys, parts = _parts(tree)
    if parts is None:
        return [tree], LEAF
    flat = [flatten(part) for part in parts]
    leaves = [leaf for part, _ in flat for leaf in part]
    return leaves, Structure(type(tree), keys, tuple(structure for _, structure in flat))


def _parts(tree: Any) -> tuple[tuple[Any, ...], list[Any] | None]:
    if type(tree) in (dict, OrderedDict):
        return tuple(tree), list(tree.values())
    if type(tree) in (tuple, list) or (isinstance(tree, tuple) and hasattr(tree, "_fields")):
        return (), list(tree)
    return (), None


def unflatten(leaves: Iterable[Any], structure: Structure) -> Any:
    """Return the tree of a structure with the given leaves."""
    return _built(iter(leaves), structure)


def _built(leaves: Iterator[Any], structure: Structure) -> Any:
    container = structure.container
    if container is None:
        return next(leaves)
    parts = [_built(leaves, child) for child in structure.children]
    if structure.keys or container in (dict, OrderedDict):
        return container(zip(structure.keys, parts, strict=True))
    return container(*parts) if hasattr(container, "_fields") else container(parts)


def mapped(function: Callable[..., Any], tree: Any) -> Any:
    """Return the tree of a function's results for each leaf."""
    leaves, structure = flatten(tree)
    return unflatten([function(leaf) for leaf in leaves], structure)


def in_tensors(tree: Any) -> Any:
    """Return the tree with tensors in place of arrays and of tensors of PyTorch's."""
    leaves, structure = flatten(tree)
    if not any(map(is_foreign, leaves)):
        return tree
    own = next((leaf for leaf in leaves if isinstance(leaf, Tensor)), None)
    # An array becomes a tensor of the session of the others.
    with nullcontext() if own is None else Session.of(own).use():
        converted = [to_tensor(leaf) if is_foreign(leaf) else leaf for leaf in leaves]
    return unflatten(converted, structure)


def spread(tree: Any, structure: Structure) -> list[Any] | None:
    """Return a leaf of `tree` for each leaf of a structure, or None if the two do not fit.

    A leaf of `tree` in the position of a subtree of the structure is repeated for all its leaves.
    """
    keys, parts = _parts(tree)
    if parts is None:
        return [tree] * _leaf_count(structure)
    fits = type(tree) is structure.container and len(parts) == len(structure.children)
    if not fits or set(keys) != set(structure.keys):
        return None
    if keys:
        parts = [tree[key] for key in structure.keys]
    leaves = []
    for part, child in zip(parts, structure.children, strict=True):
        below = spread(part, child)
        if below is None:
            return None
        leaves += below
    return leaves


def _leaf_count(structure: Structure) -> int:
    if structure.container is None:
        return 1
    return sum(_leaf_count(child) for child in structure.children)
