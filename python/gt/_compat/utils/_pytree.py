"""Nested containers of values, under the names that programs import from PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gt.func.tree import Structure, flatten, mapped, unflatten

__all__ = ["tree_flatten", "tree_leaves", "tree_map", "tree_map_only", "tree_unflatten"]

TreeSpec = Structure


def tree_flatten(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], Structure]:
    """Return the leaves of a tree in order, and its structure."""
    _check(is_leaf)
    return flatten(tree)


def tree_unflatten(leaves: Iterable[Any], treespec: Structure) -> Any:
    """Return the tree of a structure with the given leaves."""
    return unflatten(leaves, treespec)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """Return the leaves of a tree in order."""
    _check(is_leaf)
    return flatten(tree)[0]


def tree_map(
    func: Callable[..., Any],
    tree: Any,
    *rests: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Return the tree of a function's results for each leaf, and those of further trees."""
    _check(is_leaf)
    if not rests:
        return mapped(func, tree)
    leaves, structure = flatten(tree)
    others = [flatten(rest) for rest in rests]
    if any(other != structure for _, other in others):
        raise ValueError("tree_map: the trees differ in structure")
    lists = [leaves, *(other for other, _ in others)]
    return unflatten([func(*each) for each in zip(*lists, strict=True)], structure)


def tree_map_only(kind: Any, func: Callable[[Any], Any], tree: Any) -> Any:
    """Return the tree of a function's results for each leaf of a type; others stay."""
    return mapped(lambda leaf: func(leaf) if isinstance(leaf, kind) else leaf, tree)


def _check(is_leaf: Any) -> None:
    if is_leaf is not None:
        raise NotImplementedError(
            "is_leaf: only containers have parts, and all others are leaves\n"
            "  hint: leave is_leaf out"
        )
