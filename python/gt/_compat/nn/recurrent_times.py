"""Iteration of recurrent networks over the time steps of a sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import gt
from gt._gt import Tensor
from gt.nn.functional import linear

from .recurrent_cells import States

#: Maps the projected input, the projected hidden state and the states to the next states.
Step = Callable[[Tensor, Tensor, States], States]


def through_times(
    step: Step,
    sizes: list[int],
    is_reverse: bool,
    inputs: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    begin: States,
) -> tuple[Tensor, States]:
    """Return the hidden states of all time steps, concatenated, and the last states.

    Args:
        step: computes one time step.
        sizes: the number of rows of each time step; it never increases.
        is_reverse: whether sequences are read from their end.
        inputs: the projected inputs of all time steps, concatenated.
        weight: the projection of the hidden state.
        bias: added to the projected hidden state.
        begin: the initial states.
    """

    def forward(part: Tensor, states: States) -> States:
        return step(part, linear(states[0], weight, bias), states)

    parts = inputs.split(sizes) if len(sizes) > 1 else (inputs,)
    return (_backwards if is_reverse else _forwards)(parts, begin, forward)


def through_even_times(
    step: Step,
    sizes: list[int],
    is_reverse: bool,
    inputs: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    begin: States,
) -> tuple[Tensor, States]:
    """Compute `through_times` for time steps of equal sizes, with cheaper gradients."""
    plain = partial(through_times, step, sizes, is_reverse)
    if not gt.is_grad_enabled() or gt.is_autocast_enabled() or gt._gt.in_vmap():
        return plain(inputs, weight, bias, begin)
    output, *last = _EvenTimes.apply(step, plain, is_reverse, inputs, weight, bias, *begin)
    return output, tuple(last)


class _EvenTimes(gt.autograd.Function):
    """All time steps of a layer as one autograd function.

    Each step is recorded on a separate tape, on which the projected hidden state is a leaf. So the
    gradients of weight and bias take one product and one sum over all steps, not one per step.
    """

    @staticmethod
    def forward(
        ctx: Any,
        step: Step,
        plain: Callable[..., Any],
        is_reverse: bool,
        inputs: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        *begin: Tensor,
    ) -> tuple[Tensor, ...]:
        ctx.plain, ctx.is_reverse = plain, is_reverse
        ctx.save_for_backward(inputs, weight, bias, *begin)
        states, outputs, ctx.tapes = begin, [], []
        for part in _ordered(inputs.split(begin[0].shape[0]), is_reverse):
            given = (part, linear(states[0], weight, bias), *states)
            with gt.enable_grad():
                leaves = [tensor.detach().requires_grad_() for tensor in given]
                after = step(leaves[0], leaves[1], tuple(leaves[2:]))
            ctx.tapes.append((leaves, after))
            states = tuple(state.detach() for state in after)
            outputs.append(states[0])
        return gt.cat(_ordered(outputs, is_reverse)), *states

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        gradients = _plain_gradients if gt.is_grad_enabled() else _even_gradients
        return None, None, None, *gradients(ctx, grads)


def _plain_gradients(ctx: Any, grads: tuple[Tensor, ...]) -> list[Tensor | None]:
    """Return differentiable gradients, by recording all time steps again on one tape."""
    operands = ctx.saved_tensors
    wanted = [index for index, needs in enumerate(ctx.needs_input_grad[3:]) if needs]
    inputs, weight, bias, *begin = operands
    output, last = ctx.plain(inputs, weight, bias, tuple(begin))
    of_wanted = gt.autograd.grad(
        [output, *last], [operands[index] for index in wanted], list(grads), create_graph=True
    )
    gradients: list[Tensor | None] = [None] * len(operands)
    for index, gradient in zip(wanted, of_wanted, strict=True):
        gradients[index] = gradient
    return gradients


def _even_gradients(ctx: Any, grads: tuple[Tensor, ...]) -> list[Tensor | None]:
    """Return gradients from the steps' tapes; those of weight and bias take one product and sum."""
    _, weight, _, *begin = ctx.saved_tensors
    of_output: Tensor = grads[0]
    of_states: list[Any] = list(grads[1:])
    of_inputs: list[Any] = []
    of_projected, hidden = [], []
    parts = _ordered(of_output.split(begin[0].shape[0]), ctx.is_reverse)
    for (leaves, after), part in zip(reversed(ctx.tapes), reversed(parts), strict=True):
        of_states[0] = of_states[0] + part
        of_part, projected, *of_states = gt.autograd.grad(
            after, leaves, of_states, retain_graph=True, allow_unused=True
        )
        through_weight = projected @ weight
        direct = of_states[0]
        of_states[0] = through_weight if direct is None else direct + through_weight
        of_inputs.append(of_part)
        of_projected.append(projected)
        hidden.append(leaves[2])
    _, _, _, _, needs_weight, needs_bias, *_ = ctx.needs_input_grad
    every = gt.cat(of_projected)
    return [
        gt.cat(_ordered(of_inputs, not ctx.is_reverse)),
        every.T @ gt.cat(hidden).detach() if needs_weight else None,
        every.sum(0) if needs_bias else None,
        *of_states,
    ]


def _ordered(parts: Iterable[Tensor], is_reverse: bool) -> list[Tensor]:
    return list(parts)[::-1] if is_reverse else list(parts)


def _forwards(parts: Any, states: States, step: Any) -> tuple[Tensor, States]:
    """Compute all time steps in order; sequences that have ended keep their states."""
    outputs, ended = [], []
    for part in parts:
        count, before = part.shape[0], states[0].shape[0]
        if count < before:
            ended.append(tuple(state[count:] for state in states))
            states = tuple(state[:count] for state in states)
        states = step(part, states)
        outputs.append(states[0])
    ended.append(states)
    last = tuple(gt.cat(s[::-1]) if len(s) > 1 else s[0] for s in zip(*ended, strict=True))
    return gt.cat(outputs), last


def _backwards(parts: Any, begin: States, step: Any) -> tuple[Tensor, States]:
    """Compute all time steps in reverse; each sequence begins at its last element."""
    outputs: list[Tensor] = []
    states = tuple(state[: parts[-1].shape[0]] for state in begin)
    for part in reversed(parts):
        count, before = part.shape[0], states[0].shape[0]
        if count > before:
            pairs = zip(states, begin, strict=True)
            states = tuple(gt.cat([state, first[before:count]]) for state, first in pairs)
        states = step(part, states)
        outputs.append(states[0])
    return gt.cat(outputs[::-1]), states
