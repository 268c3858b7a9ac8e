"""Jacobians, Hessians and their products with vectors, of functions of tensors.

Functions take tensors and return a tensor or a tuple of them; `inputs` is the tensor or the tuple
of tensors that they are called with. The structure of results is that of PyTorch's
`torch.autograd.functional`: a tensor for a tensor, otherwise a tuple.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import gt
from gt._gt import Tensor
from gt._public import show_callers

from . import enable_grad, grad

Tensors = Tensor | tuple[Tensor, ...]
In = TypeVar("In", bound=Tensors)
Out = TypeVar("Out", bound=Tensors)


def vjp(
    func: Callable[..., Out],
    inputs: In,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Out, In]:
    """Return the outputs, and the product of a vector with the Jacobian: v^T J.

    Args:
        func: a function of the inputs that returns a tensor or a tuple.
        inputs: one tensor or a tuple.
        v: tensors of the shapes of the outputs; may be omitted for a single number.
        create_graph: make the results differentiable.
        strict: raise if an output does not depend on an input, rather than return zeros.

    >>> gt.autograd.functional.vjp(lambda x: x * x, gt.tensor([1.0, 2.0]), gt.ones(2))[1]
    tensor([2., 4.], dtype=float32)
    """
    call = _Call("vjp", func, inputs, create_graph, strict)
    vectors = call.vectors(v, call.outputs, "the outputs")
    products = call.gradients(call.outputs, vectors)
    return call.result(call.outputs, call.one_output), call.result(products, call.one_input)


def jvp(
    func: Callable[..., Out],
    inputs: In,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Out, Out]:
    """Return the outputs, and the product of the Jacobian with a vector: J v.

    The product w^T J is linear in w, and its gradient along v is J v. Arguments as for `vjp`, but
    `v` has the shapes of the inputs.

    >>> gt.autograd.functional.jvp(lambda x: x * x, gt.tensor([1.0, 2.0]), gt.ones(2))[1]
    tensor([2., 4.], dtype=float32)
    """
    call = _Call("jvp", func, inputs, create_graph, strict)
    vectors = call.vectors(v, call.inputs, "the inputs")
    weights = [gt.zeros_like(output, requires_grad=True) for output in call.outputs]
    with enable_grad():
        products = call.gradients(call.outputs, weights, again=True)
        along = [(p, w) for p, w in zip(products, vectors, strict=True) if p.requires_grad]
        moved: list[Tensor | None] = [None] * len(weights)
        if along:
            outputs, gradients = zip(*along, strict=True)
            moved = list(_grad(outputs, weights, gradients, create_graph))
    products = [
        gt.zeros_like(output) if one is None else one
        for one, output in zip(moved, call.outputs, strict=True)
    ]
    return call.result(call.outputs, call.one_output), call.result(products, call.one_output)


@overload
def jacobian(
    func: Callable[[Tensor], Tensor],
    inputs: Tensor,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Tensor: ...
@overload
def jacobian(
    func: Callable[..., Tensors],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any: ...
def jacobian(
    func: Callable[..., Tensors],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Return the derivatives of every output element by every input element.

    Args:
        func: a function of the inputs that returns a tensor or a tuple.
        inputs: one tensor or a tuple.
        create_graph: make the results differentiable.
        strict: raise if an output does not depend on an input, rather than return zeros.
        vectorize: has no effect: rows are issued one after the other without waiting.
        strategy: "reverse-mode", or "forward-mode", which PyTorch supports only with
            `vectorize=True`; it has no effect.

    Returns:
        A tensor of shape `output.shape + input.shape`; tuples of them for several inputs or
        outputs.

    >>> gt.autograd.functional.jacobian(lambda x: x * x, gt.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]], dtype=float32)
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(
            f"jacobian: strategy is {strategy!r}, expected 'reverse-mode' or 'forward-mode'"
        )
    call = _Call("jacobian", func, inputs, create_graph, strict)
    blocks = [call.rows_of(output) for output in call.outputs]
    blocks = [call.result(block, call.one_input) for block in blocks]
    return call.result(blocks, call.one_output, detach=False)


@overload
def hessian(
    func: Callable[[Tensor], Tensor],
    inputs: Tensor,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Tensor: ...
@overload
def hessian(
    func: Callable[..., Tensor],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any: ...
def hessian(
    func: Callable[..., Tensor],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Return the second derivatives of a single number by every pair of input elements.

    Args:
        func: a function of the inputs that returns a single number.
        inputs: one tensor or a tuple.
        create_graph: make the results differentiable.
        strict: raise if a result does not depend on an input, rather than return zeros.
        vectorize: accepted as by `jacobian`.
        outer_jacobian_strategy: accepted as by `jacobian`.

    >>> gt.autograd.functional.hessian(lambda x: (x**3).sum(), gt.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]], dtype=float32)
    """

    def gradient(*given: Tensor) -> Tensors:
        call = _Call("hessian", func, given, True, strict, single=True)
        products = call.gradients(call.outputs, [None], again=True)
        return products[0] if isinstance(inputs, Tensor) else tuple(products)

    return jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)


def vhp(
    func: Callable[..., Tensor],
    inputs: In,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Tensor, In]:
    """Return a function's value, and the product of a vector with its Hessian: v^T H.

    Arguments as for `vjp`, but `v` has the shapes of the inputs.

    >>> gt.autograd.functional.vhp(lambda x: (x**3).sum(), gt.tensor([1.0, 2.0]), gt.ones(2))[1]
    tensor([ 6., 12.], dtype=float32)
    """
    return _hessian_product("vhp", func, inputs, v, create_graph, strict)


def hvp(
    func: Callable[..., Tensor],
    inputs: In,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Tensor, In]:
    """Return a function's value, and the product of its Hessian with a vector: H v.

    As a Hessian is symmetric, it is computed as `vhp`.

    >>> gt.autograd.functional.hvp(lambda x: (x**3).sum(), gt.tensor([1.0, 2.0]), gt.ones(2))[1]
    tensor([ 6., 12.], dtype=float32)
    """
    return _hessian_product("hvp", func, inputs, v, create_graph, strict)


def _hessian_product(
    name: str,
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors | None,
    create_graph: bool,
    strict: bool,
) -> tuple[Any, Any]:
    """Return a function's value, and the product of its Hessian with a vector."""
    call = _Call(name, func, inputs, create_graph, strict, single=True)
    vectors = call.vectors(v, call.inputs, "the inputs")
    with enable_grad():
        first = call.gradients(call.outputs, [None], again=True)
        along = [(p, w) for p, w in zip(first, vectors, strict=True) if p.requires_grad]
    products = call.gradients([p for p, _ in along], [w for _, w in along])
    return call.result(call.outputs, True), call.result(products, call.one_input)


class _Call:
    """A call of a function with inputs on the tape, and its outputs."""

    def __init__(
        self,
        name: str,
        func: Callable[..., Any],
        inputs: Tensors,
        create_graph: bool,
        strict: bool,
        single: bool = False,
    ):
        self.name, self.create_graph, self.strict = name, create_graph, strict
        self.one_input = isinstance(inputs, Tensor)
        given = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
        self._check(given, "inputs")
        with enable_grad():
            self.inputs = [self._taped(each) for each in given]
            outputs = func(*self.inputs)
        self.one_output = isinstance(outputs, Tensor)
        self.outputs = (outputs,) if self.one_output else tuple(outputs)
        self._check(self.outputs, "the results of func")
        if single and (len(self.outputs) != 1 or self.outputs[0].numel() != 1):
            shapes = [output.shape for output in self.outputs]
            raise RuntimeError(f"{name}: func must return a single number, not shapes {shapes}")

    def _check(self, tensors: Sequence[Any], what: str) -> None:
        if not tensors or not all(isinstance(each, Tensor) for each in tensors):
            kinds = [type(each).__name__ for each in tensors]
            raise TypeError(f"{self.name}: {what} must be a tensor or a tuple of them, not {kinds}")

    def _taped(self, given: Tensor) -> Tensor:
        if self.create_graph and given.requires_grad:
            return given.view_as(given)
        return given.detach().clone().requires_grad_()

    def vectors(self, v: Tensors | None, of: Sequence[Tensor], what: str) -> list[Tensor]:
        """Return the vectors for some tensors; 1 where `v` may be omitted."""
        if v is None:
            if len(of) != 1 or of[0].numel() != 1:
                raise RuntimeError(f"{self.name}: v is missing; {what} are more than one number")
            return [gt.ones_like(of[0])]
        given = (v,) if isinstance(v, Tensor) else tuple(v)
        shapes, expected = [each.shape for each in given], [each.shape for each in of]
        if shapes != expected:
            raise RuntimeError(f"{self.name}: v has shapes {shapes}, but {what} have {expected}")
        return list(given)

    def gradients(
        self, outputs: Sequence[Tensor], weights: Sequence[Tensor | None], again: bool = False
    ) -> list[Tensor]:
        """Return the gradients of all outputs together by each input; zeros where unused."""
        used = [(o, w) for o, w in zip(outputs, weights, strict=True) if o.requires_grad]
        found: Sequence[Tensor | None] = [None] * len(self.inputs)
        if used:
            create_graph = again or self.create_graph
            with enable_grad():
                tensors, gradients = zip(*used, strict=True)
                found = _grad(tensors, self.inputs, gradients, create_graph)
        if self.strict and any(each is None for each in found):
            place = [each is None for each in found].index(True)
            raise RuntimeError(f"{self.name}: the result does not depend on input {place}")
        pairs = zip(found, self.inputs, strict=True)
        return [gt.zeros_like(own) if each is None else each for each, own in pairs]

    def rows_of(self, output: Tensor) -> list[Tensor]:
        """Return the derivatives of an output's elements by each input."""
        elements = output.reshape(-1)
        rows = [self.gradients([elements[at]], [None]) for at in range(output.numel())]
        if not rows:
            return [own.new_zeros(output.shape + own.shape) for own in self.inputs]
        columns = zip(*rows, strict=True)
        shapes = [output.shape + own.shape for own in self.inputs]
        return [gt.stack(c).reshape(s) for c, s in zip(columns, shapes, strict=True)]

    def result(self, found: Sequence[Any], single: bool, detach: bool = True) -> Any:
        """Return one tensor or a tuple, detached unless the results shall be differentiable."""
        if detach and not self.create_graph:
            found = [each.detach() for each in found]
        return found[0] if single else tuple(found)


def _grad(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    gradients: Sequence[Tensor | None],
    create_graph: bool,
) -> tuple[Tensor | None, ...]:
    """Return the gradients by inputs, None for those that the outputs do not depend on."""
    return grad(outputs, inputs, gradients, True, create_graph, allow_unused=True)


show_callers(globals())
