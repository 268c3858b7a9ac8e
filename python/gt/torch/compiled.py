"""`torch.compile(model, backend="gt")`: PyTorch graphs as functions of GT tensors.

PyTorch traces the forward and the backward pass into one graph each. Here each operator is replaced
by the GT function of its kernel, so that a call needs neither PyTorch's dispatcher nor a PyTorch
tensor for each intermediate result. The instructions are the same as without compilation; GT's hot
paths turn repeated sequences into templates.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.fx import GraphModule, Node

import gt
from gt._gt import torch_device
from gt.torch import dtypes, registry
from gt.torch.kernels import memory
from gt.torch.kernels.graphs import IN_GRAPHS

#: Keyword arguments to ignore: the device has one kind of memory and layout.
_PLACES = {"device", "layout", "pin_memory", "non_blocking", "memory_format"}


def compile_graph(graph: GraphModule, inputs: list[Any]) -> Callable[..., Any]:
    """Compile a graph to a function of PyTorch tensors.

    A graph with symbolic shapes, or one that depends on strides, runs operator by operator.
    """
    values = [node.meta.get("val") for node in graph.graph.nodes]
    if any(_is_symbolic(value) for value in values) or not _is_on_cluster(values):
        return graph.forward
    if any("as_strided" in str(node.target) for node in graph.graph.nodes):
        # The result depends on PyTorch's strides.
        return graph.forward
    if any(isinstance(node.target, torch._ops.HigherOrderOperator) for node in graph.graph.nodes):
        # Such an operator, as of `torch.cond`, calls another graph.
        return graph.forward
    layouts = _outputs(graph)
    translated, constants = _translate(graph, layouts)
    # As with any kernel, the first call records its instructions, and later calls replay them.
    kernel = torch_device.Kernel("gt::graph", translated)

    def run(*given: Any) -> list[Any]:
        found = kernel(*map(_resolved, given), *constants)
        return [_laid_out(one, layout) for one, layout in zip(found, layouts, strict=True)]

    # PyTorch passes the inputs as separate arguments, not as a list to be consumed.
    run._boxed_call = False  # type: ignore[attr-defined]
    return run


def _is_symbolic(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return any(isinstance(length, torch.SymInt) for length in value.shape)
    return isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool)


def _is_on_cluster(values: list[Any]) -> bool:
    tensors = [value for value in values if isinstance(value, torch.Tensor) and value.ndim]
    return all(tensor.device.type == "cluster" for tensor in tensors)


class _Layout(NamedTuple):
    """The device and strides of a result when the graph was traced."""

    #: The axes in memory order if the tensor is dense but not contiguous, else None. Results with
    #: gaps or overlapping elements are returned contiguous.
    order: list[int] | None
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    on_host: bool

    @classmethod
    def of(cls, traced: Any) -> _Layout | None:
        """Return the layout of a traced tensor, or None if `traced` is not a tensor."""
        if not isinstance(traced, torch.Tensor):
            return None
        shape, strides = tuple(traced.shape), traced.stride()
        order = sorted(range(traced.ndim), key=lambda axis: (-strides[axis], -shape[axis]))
        is_other = not traced.is_contiguous() and traced.permute(order).is_contiguous()
        return cls(order if is_other else None, shape, strides, traced.device.type == "cpu")


def _outputs(graph: GraphModule) -> list[_Layout | None]:
    """Return the layouts of the graph's results."""
    (node,) = (node for node in graph.graph.nodes if node.op == "output")
    return [
        _Layout.of(one.meta.get("val")) if isinstance(one, Node) else None for one in node.args[0]
    ]


def _resolved(given: Any) -> Any:
    """Return an input on the cluster, with a lazy negation resolved."""
    if not isinstance(given, torch.Tensor):
        return given
    if given.device.type != "cluster":
        return given.to("cluster")
    return given.resolve_neg() if given.is_neg() else given


def _laid_out(found: Any, layout: _Layout | None) -> Any:
    """Return a result with its traced device and strides."""
    if not isinstance(found, torch.Tensor) or layout is None:
        return found
    if layout.on_host:
        return found.cpu()
    return found if layout.order is None else found.as_strided(layout.shape, layout.strides)


def _translate(
    graph: GraphModule, layouts: list[_Layout | None]
) -> tuple[Callable[..., Any], list[torch.Tensor]]:
    """Return a function of GT tensors, and the graph's constant tensors, its last arguments.

    The function has one line per node, and deletes each value after its last use.
    """
    names: dict[Node, str] = {}
    held: dict[str, Any] = {}
    parameters: list[str] = []
    constants: dict[str, torch.Tensor] = {}
    lines: list[str] = []

    def hold(value: Any) -> str:
        name = f"held_{len(held)}"
        held[name] = value
        return name

    def written(given: Any) -> str:
        if isinstance(given, Node):
            return names[given]
        if isinstance(given, list | tuple) and _is_node(given):
            return f"[{', '.join(written(one) for one in given)}]"
        return repr(given) if given is None or type(given) in (bool, int) else hold(given)

    nodes = list(graph.graph.nodes)
    last_uses = {used: node for node in nodes for used in node.all_input_nodes}
    for node in nodes:
        name = names[node] = f"v{len(names)}"
        if node.op == "placeholder":
            parameters.append(name)
        elif node.op == "get_attr":
            constants[name] = functools.reduce(getattr, node.target.split("."), graph)
        elif node.op == "output":
            found = zip(node.args[0], layouts, strict=True)
            lines.append(f"return ({''.join(_result(written(of), at) for of, at in found)})")
            break
        else:
            lines.append(f"{name} = {_call(node, hold, written)}")
        done = [of for of, last in last_uses.items() if last is node and of.op != "get_attr"]
        if done:
            lines.append(f"del {', '.join(names[of] for of in done)}")
    head = f"def run({', '.join([*parameters, *constants])}):"
    source = "\n    ".join([head, *lines])
    exec(compile(source, "<gt.torch graph>", "exec"), held)
    return held["run"], list(constants.values())


def _result(name: str, layout: _Layout | None) -> str:
    """Return the source of a result, permuted to memory order."""
    if layout is None or layout.order is None:
        return f"{name}, "
    return f"{name}.permute({layout.order}), "


def _call(node: Node, hold: Callable[[Any], str], written: Callable[[Any], str]) -> str:
    """Return the source of the call of a node's function."""
    if node.target is operator.getitem:
        return f"{written(node.args[0])}[{written(node.args[1])}]"
    function, args = _function_of(node)
    named = [f"{key}={written(of)}" for key, of in node.kwargs.items() if _is_node(of)]
    return f"{hold(function)}({', '.join([*(written(of) for of in args), *named])})"


def _is_node(given: Any) -> bool:
    if isinstance(given, list | tuple):
        return any(_is_node(one) for one in given)
    return isinstance(given, Node)


def _function_of(node: Node) -> tuple[Callable[..., Any], Any]:
    """Return GT's function for a node, with constant keyword arguments bound, and its arguments."""
    overload: Any = node.target
    name = registry.name_of(overload)
    function = IN_GRAPHS.get(name, IN_GRAPHS.get(name.partition(".")[0]))
    if function is None and "device" not in {of.name for of in overload._schema.arguments}:
        function = registry.function_of(name)
    if function is None:
        return _by_kernel(overload, node), node.args
    known = {
        key: _known(of)
        for key, of in node.kwargs.items()
        if key not in _PLACES and not _is_node(of)
    }
    bound = functools.partial(function, **known) if known else function
    return bound, tuple(_known(of) for of in node.args)


def _known(given: Any) -> Any:
    return dtypes.to_gt(given) if isinstance(given, torch.dtype) else given


def _by_kernel(overload: Any, node: Node) -> Callable[..., Any]:
    """Return a function that calls PyTorch's operator, for which GT has no function."""
    known = {key: of for key, of in node.kwargs.items() if not _is_node(of)}

    def call(*args: Any, **kwargs: Any) -> Any:
        wrapped = torch.utils._pytree.tree_map_only(gt.Tensor, torch_device.wrap, (args, kwargs))
        found = overload(*wrapped[0], **wrapped[1], **known)
        return torch.utils._pytree.tree_map_only(torch.Tensor, memory.seen, found)

    return call


def backend(graph: GraphModule, inputs: list[Any], **options: Any) -> Callable[..., Any]:
    """Compile a graph that `torch.compile` traced, and its gradient."""
    from torch._dynamo.backends.common import aot_autograd

    return aot_autograd(fw_compiler=compile_graph, bw_compiler=compile_graph)(graph, inputs)
