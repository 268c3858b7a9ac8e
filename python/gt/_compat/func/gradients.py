"""Function transforms that compute gradients."""

import functools
from collections.abc import Callable
from typing import Any

import gt
from gt import _gt
from gt._arguments import brief, check_callable
from gt._gt import Tensor
from gt.autograd import enable_grad, is_grad_enabled
from gt.ops.annotations import P

from . import tree
from .mapping import vmap


def grad(
    func: Callable[P, Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[P, Any]:
    """Return the function that computes the gradient of `func`, as `torch.func.grad`.

    Args:
        func: Returns a single number; with `has_aux`, that and an auxiliary value.
        argnums: The arguments to differentiate by; for a tuple, the result is a tuple of gradients.
        has_aux: Whether to also return the auxiliary value.

    Raises:
        RuntimeError: `func` returns no tensor, or one that has axes.

    >>> gt.func.grad(lambda x: x**3)(gt.tensor(2.0))
    tensor(12., dtype=float32)
    """
    both = _both("grad", func, argnums, has_aux)

    @functools.wraps(func, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapped


def grad_and_value(
    func: Callable[P, Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[P, tuple[Any, Any]]:
    """Return the function that computes the gradient of `func` and its value: `(gradient, value)`.

    Arguments are those of `grad`. With `has_aux` it returns `(gradient, (value, aux))`.

    >>> gt.func.grad_and_value(lambda x: x**3)(gt.tensor(2.0))
    (tensor(12., dtype=float32), tensor(8., dtype=float32))
    """
    return _both("grad_and_value", func, argnums, has_aux)


def _both(
    name: str, func: Callable[P, Any], argnums: int | tuple[int, ...], has_aux: bool
) -> Callable[P, tuple[Any, Any]]:
    """Return the function of `grad_and_value`, for the function that errors name."""
    check_callable("func", func)

    @functools.wraps(func, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        pullback = _Pullback(func, args, kwargs, argnums, has_aux, f"{name}(f)(*args)")
        value = pullback.value
        if not isinstance(value, Tensor):
            raise RuntimeError(
                f"{name}(f)(*args): Expected f(*args) to return a Tensor, got {type(value)}"
            )
        if value.ndim != 0:
            raise RuntimeError(
                f"{name}(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor "
                f"with {value.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
            )
        gradient = pullback(None, retain_graph=False)
        value = pullback.outside(value)
        return gradient, (value, pullback.outside(pullback.aux)) if has_aux else value

    return wrapped


def value_and_grad(
    func: Callable[P, Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[P, tuple[Any, Any]]:
    """Return the function that computes the value of `func` and its gradient: `(value, gradient)`.

    Arguments are those of `grad`. With `has_aux` it returns `((value, aux), gradient)`.

    >>> gt.func.value_and_grad(lambda x: x**3)(gt.tensor(2.0))
    (tensor(8., dtype=float32), tensor(12., dtype=float32))
    """
    both = _both("value_and_grad", func, argnums, has_aux)

    @functools.wraps(func, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return value, gradient

    return wrapped


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Compute `func(*primals)`; return that and the function that backpropagates through it.

    That function takes a gradient for the output, and returns a tuple with one for each of
    `primals`. With `has_aux`, `func` returns `(output, aux)`, and the result is
    `(output, function, aux)`.

    >>> value, back = gt.func.vjp(gt.sin, gt.tensor([0.0]))
    >>> back(gt.tensor([2.0]))
    (tensor([2.], dtype=float32),)
    """
    pullback = _Pullback(func, primals, {}, tuple(range(len(primals))), has_aux, "vjp(f, *primals)")
    structure = tree.flatten(pullback.value)[1]

    def back(cotangents: Any, retain_graph: bool = True) -> Any:
        given = tree.flatten(cotangents)[1]
        if given != structure:
            raise RuntimeError(
                f"Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {given}, primal output: {structure}"
            )
        return pullback(tree.in_tensors(cotangents), retain_graph)

    value = pullback.outside(pullback.value)
    return (value, back, pullback.outside(pullback.aux)) if has_aux else (value, back)


def jvp(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """Compute `func(*primals)` and its derivative along `tangents`: `(output, derivative)`.

    The gradients of the inputs are linear in the gradients of the output, and backpropagation
    through this linear function yields the derivative along a direction. So `func` has to be
    differentiable twice.

    Args:
        func: Returns a tensor, or a tree of tensors; with `has_aux`, that and an auxiliary value.
        primals: The arguments, a tuple.
        tangents: The direction, of the same structure.
        strict: Accepted and without effect.
        has_aux: Whether to also return the auxiliary value.

    >>> gt.func.jvp(gt.sin, (gt.tensor([0.0]),), (gt.tensor([2.0]),))
    (tensor([0.], dtype=float32), tensor([2.], dtype=float32))
    """
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, tuple) or not given:
            raise RuntimeError(
                f"jvp(f, primals, tangents): Expected {name} to be a tuple of inputs. "
                f"E.g. it should be valid to call f(*primals), got {type(given).__name__}"
            )
    if tree.flatten(primals)[1] != tree.flatten(tangents)[1]:
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals and tangents to have the same structure"
        )
    places = tuple(range(len(primals)))
    pullback = _Pullback(func, primals, {}, places, has_aux, "jvp(f, primals, tangents)")
    moved = pullback.along(tree.flatten(tree.in_tensors(tangents))[0])
    value = pullback.outside(pullback.value)
    return (value, moved, pullback.outside(pullback.aux)) if has_aux else (value, moved)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Compute `func(*primals)` and return it with its derivative, a function of a direction.

    Args:
        func: returns a tensor, or a tree of tensors.
        primals: the arguments.

    >>> value, derivative = gt.func.linearize(gt.sin, gt.zeros(1))
    >>> derivative(gt.tensor([2.0])), derivative(gt.tensor([3.0]))
    (tensor([2.], dtype=float32), tensor([3.], dtype=float32))
    """
    places = tuple(range(len(primals)))
    pullback = _Pullback(func, primals, {}, places, False, "linearize(f, *primals)")
    structure = tree.flatten(primals)[1]

    def derivative(*tangents: Any) -> Any:
        leaves, given = tree.flatten(tangents)
        if given != structure:
            raise RuntimeError(
                "linearize: Expected the tangents to have the structure of the primals"
            )
        return pullback.along(tree.in_tensors(leaves))

    return pullback.outside(pullback.value), derivative


def jacfwd(
    func: Callable[P, Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    chunk_size: int | None = None,
    randomness: str = "error",
) -> Callable[P, Any]:
    """Return the function that computes the Jacobian of `func`: the same as `jacrev`.

    PyTorch computes it column by column, GT row by row; the values are the same. `randomness` is
    accepted and without effect.

    >>> gt.func.jacfwd(lambda x: x**2)(gt.tensor([3.0]))
    tensor([[6.]], dtype=float32)
    """
    return jacrev(func, argnums, has_aux=has_aux, chunk_size=chunk_size)


def jacrev(
    func: Callable[P, Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[P, Any]:
    """Return the function that computes the Jacobian of `func`, by `vmap` over `vjp`.

    For an output of shape `o` and an argument of shape `i` its shape is `o + i`. For a tree of
    outputs, each leaf is the Jacobian of that output, or a tuple of them for a tuple of `argnums`.

    >>> gt.func.jacrev(lambda x: x**2)(gt.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]], dtype=float32)
    """
    check_callable("func", func)

    @functools.wraps(func, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        pullback = _Pullback(func, args, kwargs, argnums, has_aux, "jacrev(f, ...)")
        outputs, structure = tree.flatten(pullback.value)
        jacobians = []
        for index, output in enumerate(outputs):
            zeros = [gt.zeros_like(other.detach()) for other in outputs]

            def row(one: Tensor, index: int = index, zeros: list[Tensor] = zeros) -> Any:
                given = [*zeros[:index], one, *zeros[index + 1 :]]
                return pullback(tree.unflatten(given, structure), retain_graph=True)

            count = output.numel()
            basis = gt.eye(count, dtype=output.dtype).reshape(count, *output.shape)
            rows = vmap(row, chunk_size=chunk_size)(basis)
            shaped = functools.partial(_with_axes, output.shape)
            jacobians.append(tree.mapped(shaped, rows))
        result = tree.unflatten(jacobians, structure)
        return (result, pullback.outside(pullback.aux)) if has_aux else result

    return wrapped


def _with_axes(shape: tuple[int, ...], rows: Tensor) -> Tensor:
    """Reshape the axis over an output's elements to the axes of the output."""
    return rows.reshape(*shape, *rows.shape[1:])


def hessian(func: Callable[P, Any], argnums: int | tuple[int, ...] = 0) -> Callable[P, Any]:
    """Return the function that computes the second derivatives of `func`: `jacrev` twice.

    >>> gt.func.hessian(lambda x: (x**3).sum())(gt.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]], dtype=float32)
    """
    return jacrev(jacrev(func, argnums), argnums)


class _Pullback:
    """A function that was computed once, and backpropagation to its arguments."""

    def __init__(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        argnums: int | tuple[int, ...],
        has_aux: bool,
        name: str,
    ):
        check_callable("func", func)
        several = isinstance(argnums, tuple)
        numbers = argnums if isinstance(argnums, tuple) else (argnums,)
        places = _places(numbers, len(args), name)
        args, kwargs = tree.in_tensors((args, kwargs))
        # If nothing is recorded at the call, no caller needs a gradient of the result.
        recorded = is_grad_enabled()
        with enable_grad():
            tracked = [
                tree.mapped(functools.partial(_tracked, recorded=recorded), arg)
                if place in places
                else arg
                for place, arg in enumerate(args)
            ]
            value = func(*tracked, **kwargs)
        self.aux: Any = None
        if has_aux:
            if not (isinstance(value, tuple) and len(value) == 2):
                raise RuntimeError(
                    f"{name}: output of function f should be a tuple: (output, aux) if has_aux is "
                    "True"
                )
            value, self.aux = value
        self.value = value
        self.by, self.structure = tree.flatten(
            tuple(tracked[place] for place in places) if several else tracked[places[0]]
        )
        if not all(isinstance(leaf, Tensor) for leaf in self.by):
            raise RuntimeError(f"{name}: an argument to differentiate by is not a tensor")
        outputs = [leaf for leaf in tree.flatten(value)[0] if isinstance(leaf, Tensor)]
        self.goes_on = recorded and any(_gt.reaches_others(leaf, self.by) for leaf in outputs)

    def __call__(self, cotangents: Any, retain_graph: bool) -> Any:
        """Return the gradients by the arguments; without cotangents, those of the only output."""
        outputs = tree.flatten(self.value)[0]
        given = [None] * len(outputs) if cotangents is None else tree.flatten(cotangents)[0]
        pairs = [pair for pair in zip(outputs, given, strict=True) if pair[0].requires_grad]
        create = self.goes_on or any(g is not None and g.requires_grad for _, g in pairs)
        found: list[Tensor | None] = [None] * len(self.by)
        if pairs:
            roots, gradients = [list(side) for side in zip(*pairs, strict=True)]
            found = _gt.grad(roots, gradients, self.by, retain_graph or create, create)
        whole = [
            gt.zeros_like(leaf.detach()) if one is None else one
            for leaf, one in zip(self.by, found, strict=True)
        ]
        return tree.unflatten(whole, self.structure)

    def along(self, tangents: list[Tensor]) -> Any:
        """Return the derivative of the value along a direction of the arguments."""
        outputs, structure = tree.flatten(self.value)
        weights = [gt.zeros_like(leaf.detach(), requires_grad=True) for leaf in outputs]
        with enable_grad():
            back = tree.flatten(self(tree.unflatten(weights, structure), retain_graph=True))[0]
        pairs = [pair for pair in zip(back, tangents, strict=True) if pair[0].requires_grad]
        found: list[Tensor | None] = [None] * len(weights)
        if pairs:
            roots, gradients = [list(side) for side in zip(*pairs, strict=True)]
            create = self.goes_on or any(each.requires_grad for each in gradients)
            found = _gt.grad(roots, gradients, weights, create, create)
        whole = [
            gt.zeros_like(leaf.detach()) if one is None else one
            for leaf, one in zip(weights, found, strict=True)
        ]
        return tree.unflatten(whole, structure)

    def outside(self, value: Any) -> Any:
        """Return a value without history, unless the caller's history leads through it."""
        if self.goes_on:
            return value
        return tree.mapped(lambda leaf: leaf.detach() if isinstance(leaf, Tensor) else leaf, value)


def _places(argnums: tuple[int, ...], count: int, name: str) -> list[int]:
    """Return the positions of the arguments to differentiate by, counted from the front."""
    for argnum in argnums:
        if not isinstance(argnum, int):
            raise TypeError(
                f"{name}: argnums is {brief(argnum)}, expected the number of an argument"
            )
        if not -count <= argnum < count:
            raise RuntimeError(f"{name}: Got argnum={argnum}, but only {count} positional inputs")
    places = [argnum % count for argnum in argnums]
    if len(set(places)) < len(places):
        raise RuntimeError(f"{name}: argnums elements must be unique. Got {argnums}")
    return places


def _tracked(leaf: Any, recorded: bool) -> Any:
    """Return a tensor at which gradients end: a new step of its history, or a leaf."""
    if not isinstance(leaf, Tensor):
        return leaf
    if recorded and leaf.requires_grad:
        return leaf.view_as(leaf)
    return leaf.detach().requires_grad_()
