"""Nested tuples, lists and dicts of tensors (*trees*), as functions take and give them."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Structure:
    """What a tree is but for its leaves: its container (None for a leaf), keys and children."""

    container: type | None
    keys: tuple = ()
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


def flatten(tree) -> tuple[list, Structure]:
    """Give the leaves in order, and the structure. What is no container is a leaf, None too."""
    keys, parts = _parts(tree)
    if parts is None:
        return [tree], LEAF
    flat = [flatten(part) for part in parts]
    leaves = [leaf for part, _ in flat for leaf in part]
    return leaves, Structure(type(tree), keys, tuple(structure for _, structure in flat))


def _parts(tree) -> tuple[tuple, list | None]:
    if type(tree) in (dict, OrderedDict):
        return tuple(tree), list(tree.values())
    if type(tree) in (tuple, list) or (isinstance(tree, tuple) and hasattr(tree, "_fields")):
        return (), list(tree)
    return (), None


def unflatten(leaves, structure: Structure):
    """Give the tree of a structure with these leaves."""
    return _built(iter(leaves), structure)


def _built(leaves, structure: Structure) -> Any:
    container = structure.container
    if container is None:
        return next(leaves)
    parts = [_built(leaves, child) for child in structure.children]
    if structure.keys or container in (dict, OrderedDict):
        return container(zip(structure.keys, parts, strict=True))
    return container(*parts) if hasattr(container, "_fields") else container(parts)


def mapped(function: Callable, tree):
    """Give a tree with what a function gives for each leaf."""
    leaves, structure = flatten(tree)
    return unflatten([function(leaf) for leaf in leaves], structure)


def spread(tree, structure: Structure) -> list | None:
    """Give a leaf of `tree` for each leaf of a structure; one stands for all below its place.

    None where the two do not fit.
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
