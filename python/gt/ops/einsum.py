"""Sums of products over named axes: `einsum` and `tensordot`.

Every axis has a label. Two tensors are multiplied as batches of matrices: labels that both have are
batch axes if the result keeps them and are summed over if not; the others are rows or columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor
from gt.ops.registry import function

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@function(autocast="inside")
def einsum(equation: str | Tensor, *operands: Any) -> Tensor:
    """Multiply tensors and sum over axes, by an equation in Einstein's notation.

    Letters name axes. Letters that the result (after `->`) does not name are summed over; a letter
    twice in one tensor takes the diagonal; `...` stands for all axes without a letter, which
    broadcast. Without `->`, the result has the letters that occur once, in alphabetical order.
    Tensors are multiplied from left to right. Lists of ints may name axes instead of an equation:
    `einsum(a, [0, 1], b, [1, 2], [0, 2])`.

    >>> gt.einsum("ij,jk->ik", gt.ones(2, 3), gt.ones(3, 4)).shape
    (2, 4)
    """
    if isinstance(equation, str):
        tensors = operands[0] if _is_list(operands) else operands
        inputs, output = _parsed(equation)
    else:
        tensors, inputs, output = _sublists([equation, *operands])
    if len(inputs) != len(tensors):
        raise ValueError(f"einsum: the equation names {len(inputs)} tensors, not {len(tensors)}")
    rank = max(_unnamed(x, terms) for x, terms in zip(tensors, inputs, strict=True))
    if output is None:
        output = _once(inputs)
    labels = [_labels(x, of, rank) for x, of in zip(tensors, inputs, strict=True)]
    return _summed([*tensors], labels, _result_labels(output, labels, rank))


@function(autocast="widest")
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """Multiply two tensors and sum over axes of both.

    Args:
        a: a tensor.
        b: a tensor.
        dims: the number of axes: the last of `a` and the first of `b`; or two lists, the axes of
            `a` and the matching axes of `b`.

    >>> gt.tensordot(gt.ones(2, 3, 4), gt.ones(3, 4, 5), dims=2).shape
    (2, 5)
    """
    ours, theirs = _meeting(a, b, dims)
    if len(ours) != len(theirs):
        raise ValueError(f"tensordot: {len(ours)} axes of a cannot match {len(theirs)} of b")
    ours = _positions(a, ours, "a")
    meets = dict(zip(_positions(b, theirs, "b"), ours, strict=True))
    of_a = [*range(a.ndim)]
    of_b = [meets.get(axis, a.ndim + axis) for axis in range(b.ndim)]
    output = [label for label in of_a + of_b if label not in ours]
    return _summed([a, b], [of_a, of_b], output)


def _meeting(a: Tensor, b: Tensor, dims: Any) -> tuple[list[int], list[int]]:
    """Return the axes of each tensor that are summed over."""
    if isinstance(dims, Tensor):
        dims = dims.long().tolist()
    if isinstance(dims, list | tuple) and len(dims) == 2:
        ours, theirs = ([side] if isinstance(side, int) else [*side] for side in dims)
        return ours, theirs
    if isinstance(dims, list | tuple):
        (dims,) = dims
    if not 0 <= dims <= min(a.ndim, b.ndim):
        raise ValueError(
            f"tensordot: dims is {dims}, expected 0 to {min(a.ndim, b.ndim)} for tensors of "
            f"shapes {a.shape} and {b.shape}"
        )
    return [*range(a.ndim - dims, a.ndim)], [*range(dims)]


def _positions(x: Tensor, axes: list[int], name: str) -> list[int]:
    """Return axes counted from the front."""
    for axis in axes:
        if not -x.ndim <= axis < x.ndim:
            raise IndexError(f"tensordot: {name} of shape {x.shape} has no axis {axis}")
    positions = [axis % x.ndim for axis in axes]
    if len({*positions}) != len(positions):
        raise ValueError(f"tensordot: axes {axes} of {name} name one twice")
    return positions


def _is_list(operands: Sequence[Any]) -> bool:
    return len(operands) == 1 and isinstance(operands[0], list | tuple)


def _parsed(equation: str) -> tuple[list[list[Any]], list[Any] | None]:
    """Return the labels of each tensor and of the result: positions in `_LETTERS`, or `...`."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    inputs = [_terms(term, equation) for term in left.split(",")]
    return inputs, _terms(right, equation) if arrow else None


def _terms(text: str, equation: str) -> list[Any]:
    terms: list[Any] = []
    before, dots, after = text.partition("...")
    for part in (before, [...] if dots else "", after):
        for letter in part:
            if letter is not ... and letter not in _LETTERS:
                raise ValueError(
                    f"einsum: {letter!r} in {equation!r} is no letter\n  hint: as in 'ij,jk->ik'"
                )
            terms.append(letter if letter is ... else _LETTERS.index(letter))
    return terms


def _sublists(operands: list[Any]) -> tuple[list[Tensor], list[list[Any]], list[Any] | None]:
    """Return tensors, labels and result labels of `einsum(a, [0, 1], b, [1, 2], [0, 2])`."""
    output = operands.pop() if len(operands) % 2 else None
    inputs = [list(of) for of in operands[1::2]]
    for term in [*inputs, output or []]:
        if any(label is not ... and not 0 <= label < len(_LETTERS) for label in term):
            raise ValueError(f"einsum: labels {list(term)} are not all in 0 to 51")
    return operands[::2], inputs, None if output is None else list(output)


def _unnamed(x: Tensor, terms: list[Any]) -> int:
    """Return the number of axes that `...` stands for."""
    named = len(terms) - terms.count(...)
    if named > x.ndim or (named < x.ndim and ... not in terms):
        raise ValueError(f"einsum: {named} axes are named for a tensor of shape {x.shape}")
    return x.ndim - named


def _once(inputs: list[list[Any]]) -> list[Any]:
    """Return the labels of the result for an equation without `->`."""
    together = [label for terms in inputs for label in terms if label is not ...]
    return [..., *sorted(label for label in {*together} if together.count(label) == 1)]


def _labels(x: Tensor, terms: list[Any], rank: int) -> list[int]:
    """Return a label for every axis; those that `...` stands for have negative labels."""
    at = terms.index(...) if ... in terms else len(terms)
    return [*terms[:at], *range(-_unnamed(x, terms), 0), *terms[at + 1 :]]


def _result_labels(terms: list[Any], labels: list[list[int]], rank: int) -> list[int]:
    at = terms.index(...) if ... in terms else len(terms)
    output = [*terms[:at], *(range(-rank, 0) if ... in terms else ()), *terms[at + 1 :]]
    known = {label for of in labels for label in of}
    for label in output:
        if label not in known or output.count(label) > 1:
            problem = "which no tensor has" if label not in known else "which it names twice"
            name = _LETTERS[label]
            raise ValueError(f"einsum: the result has axis {name!r}, {problem}")
    return output


def _summed(tensors: list[Tensor], labels: list[list[int]], output: list[int]) -> Tensor:
    """Multiply tensors with labelled axes, and sum over the labels that the output lacks."""
    _check_lengths(tensors, labels)
    total, names = tensors[0], labels[0]
    for place in range(1, len(tensors)):
        wanted = {label for of in (*labels[place + 1 :], output) for label in of}
        total, names = _product(total, names, tensors[place], labels[place], wanted)
    return _arranged(*_reduced(total, names, {*output}), output)


def _check_lengths(tensors: list[Tensor], labels: list[list[int]]) -> None:
    """Raise an error if axes with one label have lengths that do not broadcast."""
    known: dict[int, int] = {}
    for x, names in zip(tensors, labels, strict=True):
        own = dict(zip(names, x.shape, strict=True))
        for label, length in zip(names, x.shape, strict=True):
            before = known.setdefault(label, length)
            if (1 not in (before, length) and before != length) or own[label] != length:
                name = _LETTERS[label] if label >= 0 else "..."
                raise ValueError(
                    f"einsum: axis {name!r} has {before} elements in one place and {length} in "
                    f"another\n  hint: the shapes are {', '.join(str(x.shape) for x in tensors)}"
                )
            known[label] = length if before == 1 else before


def _reduced(x: Tensor, names: list[int], wanted: set[int]) -> tuple[Tensor, list[int]]:
    """Take the diagonal of axes with one label, and sum over the labels not in `wanted`."""
    for label in {label for label in names if names.count(label) > 1}:
        while names.count(label) > 1:
            one = names.index(label)
            other = names.index(label, one + 1)
            x = gt.diagonal(x, 0, one, other)
            names = [*names[:one], *names[one + 1 : other], *names[other + 1 :], label]
    gone = tuple(axis for axis, label in enumerate(names) if label not in wanted)
    return x.sum(gone) if gone else x, [label for label in names if label in wanted]


def _product(
    a: Tensor, of_a: list[int], b: Tensor, of_b: list[int], wanted: set[int]
) -> tuple[Tensor, list[int]]:
    """Multiply two tensors, and sum over the labels not in `wanted`."""
    a, of_a = _without_ones(a, of_a, b, of_b)
    b, of_b = _without_ones(b, of_b, a, of_a)
    a, of_a = _reduced(a, of_a, wanted | {*of_b})
    b, of_b = _reduced(b, of_b, wanted | {*of_a})
    batches = [label for label in of_a if label in of_b and label in wanted]
    gone = [label for label in of_a if label in of_b and label not in wanted]
    rows = [label for label in of_a if label not in of_b]
    columns = [label for label in of_b if label not in of_a]
    sizes = dict(zip([*of_a, *of_b], [*a.shape, *b.shape], strict=True))
    shape = [sizes[label] for label in batches + rows + columns]
    together = [batches] if batches else []
    left = _matrices(a, of_a, *together, rows, gone)
    right = _matrices(b, of_b, *together, gone, columns)
    product = left @ right if gone else left * right
    return product.reshape(shape), batches + rows + columns


def _without_ones(
    x: Tensor, names: list[int], other: Tensor, others: list[int]
) -> tuple[Tensor, list[int]]:
    """Drop axes of length 1 that are longer in the other tensor: they broadcast."""
    lengths = dict(zip(others, other.shape, strict=True))
    gone = [at for at, of in enumerate(names) if x.shape[at] == 1 != lengths.get(of, 1)]
    if not gone:
        return x, names
    kept = [at for at in range(x.ndim) if at not in gone]
    return x.reshape([x.shape[at] for at in kept]), [names[at] for at in kept]


def _matrices(x: Tensor, names: list[int], *groups: list[int]) -> Tensor:
    """Merge the axes of each group into one: of batches, if any, of rows, and of columns."""
    sizes = dict(zip(names, x.shape, strict=True))
    shape = [math.prod(sizes[label] for label in group) for group in groups]
    return _arranged(x, names, [label for group in groups for label in group]).reshape(shape)


def _arranged(x: Tensor, names: list[int], wanted: list[int]) -> Tensor:
    order = [names.index(label) for label in wanted]
    return x if order == [*range(x.ndim)] else x.permute(order)
