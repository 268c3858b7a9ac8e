"""L-BFGS: a quasi-Newton method, whose step calls the closure several times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gt
from gt._gt import Tensor
from gt.autograd import enable_grad, no_grad

from .line_search import Trial, strong_wolfe
from .optimizer import Group, Optimizer, Parameters
from .options import options


class LBFGS(Optimizer):
    """Limited-memory BFGS (Liu and Nocedal, Math. Programming 1989).

    A step's control flow depends on values, so it fetches them. All parameters are in one group.

    Args:
        params: the parameters.
        lr: the learning rate.
        max_iter: the maximum number of iterations per step.
        max_eval: the maximum number of evaluations per step, by default 1.25 `max_iter`.
        tolerance_grad: a step ends when no gradient element is larger.
        tolerance_change: a step ends when the loss or all parameters change less.
        history_size: the number of past updates to keep.
        line_search_fn: "strong_wolfe", or None for steps of fixed length.
        maximize: whether to maximize the loss instead of minimizing it.
    """

    _counters = ()

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
        *,
        maximize: bool = False,
    ):
        max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        super().__init__(params, options(locals()))
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    def _check(self, group: Group) -> None:
        super()._check(group)
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise RuntimeError(
                f"only 'strong_wolfe' is supported, line_search_fn is {group['line_search_fn']!r}"
            )

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take a step; the closure, which computes loss and gradients, is called several times."""
        if closure is None:
            raise TypeError("LBFGS.step() needs a closure that computes the loss and its gradients")
        with no_grad():
            return self._step(enable_grad()(closure))

    def _step(self, closure: Callable[[], Any]) -> Any:
        (group,) = self.param_groups
        sign = -1.0 if group["maximize"] else 1.0
        state = self.state[self.params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = closure()
        loss = sign * float(first_loss)
        state["func_evals"] += 1
        evaluations, rounds = 1, 0
        gradient = self._flat_gradient(sign)
        tolerance = group["tolerance_grad"]
        if float(gradient.abs().max()) <= tolerance:
            return first_loss
        while rounds < group["max_iter"]:
            rounds += 1
            state["n_iter"] += 1
            direction = self._direction(state, gradient, group["history_size"])
            state.update(prev_flat_grad=gradient, prev_loss=loss, d=direction)
            length = float(group["lr"])
            if state["n_iter"] == 1:
                length *= min(1.0, 1.0 / float(gradient.abs().sum()))
            state["t"] = length
            slope = float(gradient.dot(direction))
            if slope > -group["tolerance_change"]:
                break
            used = 0
            if group["line_search_fn"] is not None:
                search = _Line(self, closure, direction, sign)
                start = Trial(0.0, loss, gradient, slope)
                left = group["max_eval"] - evaluations
                found, used = strong_wolfe(search, direction, length, start, left)
                search.move(found.length)
                length, loss, gradient = found.length, found.value, found.gradient
                state["t"] = length
            else:
                self._move(direction, length)
                if rounds != group["max_iter"]:
                    loss, used = sign * float(closure()), 1
                    gradient = self._flat_gradient(sign)
            evaluations += used
            state["func_evals"] += used
            if rounds == group["max_iter"] or evaluations >= group["max_eval"]:
                break
            if float(gradient.abs().max()) <= tolerance:
                break
            if float((direction * length).abs().max()) <= group["tolerance_change"]:
                break
            if abs(loss - state["prev_loss"]) < group["tolerance_change"]:
                break
        return first_loss

    def _direction(self, state: dict[str, Any], gradient: Tensor, memory: int) -> Tensor:
        """Update the history with the last change, and return the search direction."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
            return -gradient
        change, step = gradient - state["prev_flat_grad"], state["d"] * state["t"]
        product = float(change.dot(step))
        changes, steps, ratios = state["old_dirs"], state["old_stps"], state["ro"]
        if product > 1e-10:
            if len(changes) == memory:
                for remembered in (changes, steps, ratios):
                    remembered.pop(0)
            changes.append(change)
            steps.append(step)
            ratios.append(1.0 / product)
            state["H_diag"] = product / float(change.dot(change))
        found, shares = -gradient, state.setdefault("al", [None] * memory)
        for at in reversed(range(len(changes))):
            shares[at] = steps[at].dot(found) * ratios[at]
            found = found - changes[at] * shares[at]
        found = found * state["H_diag"]
        for at in range(len(changes)):
            found = found + steps[at] * (shares[at] - changes[at].dot(found) * ratios[at])
        return found

    def _flat_gradient(self, sign: float) -> Tensor:
        parts = []
        for parameter in self.params:
            grad = parameter.grad
            part = gt.zeros_like(parameter) if grad is None else grad
            parts.append((gt.view_as_real(part) if part.is_complex() else part).reshape(-1))
        flat = gt.cat(parts)
        return flat if sign > 0 else -flat

    def _move(self, direction: Tensor, length: float) -> None:
        """Add `length` times `direction` to the parameters."""
        start = 0
        for parameter in self.params:
            real = gt.view_as_real(parameter) if parameter.is_complex() else parameter
            part = direction[start : start + real.numel()].reshape(real.shape)
            real.add_scaled_(part, length)
            start += real.numel()


class _Line:
    """The loss along a direction from the current parameters."""

    def __init__(
        self, optimizer: LBFGS, closure: Callable[[], Any], direction: Tensor, sign: float
    ):
        self._optimizer, self._closure = optimizer, closure
        self._direction, self._sign = direction, sign
        self._start = [parameter.detach().clone() for parameter in optimizer.params]

    def __call__(self, length: float) -> tuple[float, Tensor]:
        self.move(length)
        value = self._sign * float(self._closure())
        gradient = self._optimizer._flat_gradient(self._sign)
        self.move(0.0)
        return value, gradient

    def move(self, length: float) -> None:
        """Set the parameters to the point at a step length."""
        for parameter, start in zip(self._optimizer.params, self._start, strict=True):
            parameter.copy_(start)
        if length:
            self._optimizer._move(self._direction, length)
