"""`vmap`: a function of one sample, computed for a whole batch."""

import functools
from collections.abc import Callable
from typing import Any

from gt import _gt
from gt._arguments import check_callable
from gt._gt import Tensor
from gt.ops.annotations import P, T

from . import tree

RANDOMNESS = ("error", "different", "same")


def vmap(
    func: Callable[P, T],
    in_dims: int | tuple[Any, ...] = 0,
    out_dims: int | tuple[Any, ...] | None = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[P, T]:
    """Return the function that computes `func` for a whole batch at once, as `torch.vmap`.

    Inside `func`, a tensor that is mapped over has the shape of one sample; each operation is
    issued once, for all samples. An operation that does not support batches is computed for one
    sample after the other.

    Args:
        func: Takes and returns tensors, or nested tuples, lists and dicts of them.
        in_dims: The axis of each input that is mapped over, None for inputs that all samples
            share: one for all inputs, or a tuple with the structure of the inputs.
        out_dims: The position of the batch axis in each output; None for outputs that all samples
            share.
        randomness: Whether random numbers inside are an `"error"`, `"different"` for each sample,
            or the `"same"` for all.
        chunk_size: The number of samples computed at once, at most, to save memory.

    Raises:
        ValueError: `in_dims` or `out_dims` do not fit the inputs or outputs, the batch axes differ
            in length, or no input is mapped over.
        RuntimeError: `func` needs values of a tensor that is mapped over, as in `if x > 0:` and
            `x.item()`, or draws random numbers where they are an error.

    >>> gt.vmap(gt.dot)(gt.tensor([[1.0, 2.0], [3.0, 4.0]]), gt.ones(2, 2))
    tensor([3., 7.], dtype=float32)
    """
    if randomness not in RANDOMNESS:
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. "
            f"Got {randomness}"
        )
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")
    check_callable("func", func)
    call = _Call(func, in_dims, out_dims, randomness)

    @functools.wraps(func, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree.in_tensors((args, kwargs))
        leaves, dims, structure = call.inputs(args)
        size = call.size(leaves, dims)
        if chunk_size is None or chunk_size >= size:
            return call.run(size, leaves, dims, structure, kwargs)
        return call.in_chunks(chunk_size, size, leaves, dims, structure, kwargs)

    return wrapped


class _Call:
    """A function and the options of its mapping."""

    def __init__(self, func: Callable[..., Any], in_dims: Any, out_dims: Any, randomness: str):
        self.func, self.in_dims, self.out_dims = func, in_dims, out_dims
        self.randomness = randomness
        self.name = getattr(func, "__name__", None) or repr(func)

    def inputs(self, args: tuple[Any, ...]) -> tuple[list[Any], list[Any], tree.Structure]:
        """Return the inputs' leaves, the axis of each that is mapped over, and their structure."""
        head = f"vmap({self.name}, in_dims={self.in_dims}, ...)(<inputs>): "
        if not isinstance(self.in_dims, (int, tuple)):
            raise ValueError(
                f"{head}expected `in_dims` to be int or a (potentially nested) tuple matching the "
                f"structure of inputs, got: {type(self.in_dims)}."
            )
        if not args:
            raise ValueError(
                f"vmap({self.name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or "
                "you are trying to vmap over a function with no inputs. The latter is unsupported."
            )
        leaves, structure = tree.flatten(args)
        dims = tree.spread(self.in_dims, structure)
        if dims is None:
            raise ValueError(
                f"{head}in_dims is not compatible with the structure of `inputs`. in_dims has "
                f"structure {tree.flatten(self.in_dims)[1]} but inputs has structure {structure}."
            )
        fitted = [_axis(leaf, dim, head) for leaf, dim in zip(leaves, dims, strict=True)]
        return leaves, fitted, structure

    def size(self, leaves: list[Any], dims: list[Any]) -> int:
        """Return the length of the batch."""
        pairs = zip(leaves, dims, strict=True)
        sizes = [leaf.shape[dim] for leaf, dim in pairs if dim is not None]
        if not sizes:
            raise ValueError("vmap: Expected at least one Tensor to vmap over")
        if any(size != sizes[0] for size in sizes):
            raise ValueError(
                "vmap: Expected all tensors to have the same size in the mapped dimension, got "
                f"sizes {sizes} for the mapped dimension"
            )
        return sizes[0]

    def run(
        self,
        size: int,
        leaves: list[Any],
        dims: list[Any],
        structure: tree.Structure,
        kwargs: dict[str, Any],
    ) -> Any:
        """Compute the whole batch."""
        level = _gt.vmap_level(size, self.randomness)
        try:
            entered = [
                leaf if dim is None else level.enter(leaf.movedim(dim, 0))
                for leaf, dim in zip(leaves, dims, strict=True)
            ]
            outputs = self.func(*tree.unflatten(entered, structure), **kwargs)
            found, output_structure = tree.flatten(outputs)
            places = self.places(output_structure)
            left = [self.leave(level, *pair) for pair in zip(found, places, strict=True)]
        finally:
            level.exit()
        return tree.unflatten(left, output_structure)

    def places(self, structure: tree.Structure) -> list[Any]:
        """Return the position of the batch axis in each output."""
        dims = self.out_dims
        if structure is tree.LEAF and isinstance(dims, tuple) and len(dims) == 1:
            dims = dims[0]
        places = tree.spread(dims, structure)
        if places is None:
            raise ValueError(
                f"vmap({self.name}, ..., out_dims={self.out_dims})(<inputs>): out_dims is not "
                "compatible with the structure of `outputs`. out_dims has structure "
                f"{tree.flatten(self.out_dims)[1]} but outputs has structure {structure}."
            )
        if any(not isinstance(place, (int, type(None))) for place in places):
            raise ValueError(
                f"vmap({self.name}, ..., out_dims={self.out_dims}): `out_dims` must be an int, "
                "None or a python collection of ints representing where in the outputs the vmapped "
                "dimension should appear."
            )
        return places

    def leave(self, level: _gt.VmapLevel, output: Any, place: int | None) -> Any:
        """Return an output with its batch axis, or unchanged if its position is None."""
        if place is None:
            if isinstance(output, Tensor) and level.maps(output):
                raise ValueError(
                    f"vmap({self.name}, ...): `{self.name}` can not return a BatchedTensor when "
                    "out_dim is None"
                )
            return output
        if not isinstance(output, Tensor):
            raise ValueError(
                f"vmap({self.name}, ...): `{self.name}` must only return Tensors, got type "
                f"{type(output)}. Did you mean to set out_dims= to None for output?"
            )
        return level.leave(output).movedim(0, place)

    def in_chunks(
        self,
        most: int,
        size: int,
        leaves: list[Any],
        dims: list[Any],
        structure: tree.Structure,
        kwargs: dict[str, Any],
    ) -> Any:
        """Compute the batch in chunks of at most `most` samples, and join the outputs."""
        chunks = []
        for start in range(0, size, most):
            length = min(most, size - start)
            parts = [
                leaf if dim is None else leaf.narrow(dim, start, length)
                for leaf, dim in zip(leaves, dims, strict=True)
            ]
            outputs = self.run(length, parts, dims, structure, kwargs)
            found, output_structure = tree.flatten(outputs)
            chunks.append(found)
        places = self.places(output_structure)
        joined = [
            parts[0] if place is None else _gt.cat(list(parts), dim=place)
            for place, *parts in zip(places, *chunks, strict=True)
        ]
        return tree.unflatten(joined, output_structure)


def _axis(leaf: Any, dim: Any, head: str) -> int | None:
    """Return a mapped axis counted from the front, or None; raise if it does not fit the input."""
    if dim is None:
        return None
    if not isinstance(dim, int):
        raise ValueError(
            f"{head}Got in_dim={dim} for an input but in_dim must be either an integer dimension "
            "or None."
        )
    if not isinstance(leaf, Tensor):
        raise ValueError(
            f"{head}Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot "
            "vmap over non-Tensor arguments, please use None as the respective in_dim"
        )
    rank = leaf.ndim
    if not -rank <= dim < rank:
        raise ValueError(
            f"{head}Got in_dim={dim} for some input, but that input is a Tensor of dimensionality "
            f"{rank} so expected in_dim to satisfy -{rank} <= in_dim < {rank}."
        )
    return dim % rank
