"""Loss scaling, so that gradients in half precision do not become zero."""

from __future__ import annotations

from typing import Any

import gt
from gt import _gt
from gt._arguments import brief
from gt._gt import Tensor
from gt.autograd import no_grad

_READY, _UNSCALED, _STEPPED = "ready", "unscaled", "stepped"


class _Progress:
    """The progress of an optimizer in the current iteration."""

    def __init__(self) -> None:
        self.stage = _READY
        #: 1 if a gradient is not finite, else 0, as a tensor; None before they are unscaled.
        self.found_inf: Tensor | None = None


class GradScaler:
    """Scales losses, unscales gradients, and skips steps whose gradients overflowed.

    Args:
        device: accepted for compatibility with PyTorch; it has no effect.
        init_scale: the first scale.
        growth_factor: the factor of the scale after `growth_interval` steps without overflow.
        backoff_factor: the factor of the scale after an overflow.
        growth_interval: the number of steps without overflow after which the scale grows.
        enabled: False leaves losses and steps unchanged.

    The scale is a tensor, and `scale`, `unscale_` and `update` wait for nothing. `step` waits for
    one number, as in PyTorch: whether a gradient is not finite, because then nothing of the
    optimizer may change.

    >>> weight = gt.ones(1, requires_grad=True)
    >>> optimizer = gt.optim.SGD([weight], lr=0.5)
    >>> scaler = gt.amp.GradScaler()
    >>> scaler.scale((weight * 2).sum()).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> weight.detach()
    tensor([0.], dtype=float32)
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        if not isinstance(init_scale, (int, float)):
            raise TypeError(f"GradScaler: init_scale is {brief(init_scale)}, expected a number")
        if enabled and growth_factor <= 1:
            raise ValueError(f"GradScaler: growth_factor is {growth_factor}, expected more than 1")
        if enabled and backoff_factor >= 1:
            raise ValueError(f"GradScaler: backoff_factor is {backoff_factor}, expected below 1")
        self._device, self._enabled = device, enabled
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval = growth_interval
        #: The scale and the number of steps since it changed: tensors after the first `scale`.
        self._scale: Tensor | float = init_scale
        self._growth_tracker: Tensor | int = 0
        self._progress: dict[int, _Progress] = {}

    def scale(self, outputs: Any) -> Any:
        """Multiply a tensor, or each tensor of a list or other iterable, by the scale."""
        if not self._enabled:
            return outputs
        if not isinstance(self._scale, Tensor):
            self._scale = gt.full((), self._scale, dtype=gt.float32)
            self._growth_tracker = gt.full((), self._growth_tracker, dtype=gt.int32)
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self.scale(output) for output in outputs)
        if hasattr(outputs, "__iter__") and not isinstance(outputs, (str, bytes)):
            return map(self.scale, outputs)
        raise ValueError(
            f"outputs must be a Tensor or an iterable of Tensors, not {brief(outputs)}"
        )

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, before they are clipped.

        Raises:
            RuntimeError: the gradients are unscaled already, or `step` was called.
            ValueError: a gradient is float16, in which it would lose precision again.
        """
        if not self._enabled:
            return
        scale, _ = self._tensors("unscale_")
        progress = self._progress.setdefault(id(optimizer), _Progress())
        if progress.stage == _UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if progress.stage == _STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        parameters = [each for group in optimizer.param_groups for each in group["params"]]
        grads = [each.grad for each in parameters if each.grad is not None]
        if any(grad.dtype == gt.float16 for grad in grads):
            raise ValueError("Attempting to unscale FP16 gradients.")
        with no_grad():
            inverse = scale.double().reciprocal().float()
            finite = [grad.isfinite().all() for grad in grads]
            for grad in grads:
                grad.mul_(inverse)
            if finite:
                progress.found_inf = gt.stack(finite).all().logical_not().to(gt.float32)
        progress.stage = _UNSCALED

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Unscale the gradients if they are not, and step unless one of them is not finite.

        Waits for that one number.

        Args:
            optimizer: the optimizer whose `step` is called.
            args: positional arguments of `step`.
            kwargs: keyword arguments of `step`; a closure is not supported.

        Returns:
            The result of `step`, or None if it was skipped.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._tensors("step")
        progress = self._progress.setdefault(id(optimizer), _Progress())
        if progress.stage == _STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if progress.stage == _READY:
            self.unscale_(optimizer)
        if progress.found_inf is None:
            raise RuntimeError(
                "No inf checks were recorded for this optimizer.\n  hint: no parameter of it has a "
                "gradient; call backward() first"
            )
        result = None if progress.found_inf.item() else optimizer.step(*args, **kwargs)
        progress.stage = _STEPPED
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Shrink the scale after an overflow, grow it after long without, or set it.

        Args:
            new_scale: the new scale; by default it follows from the steps.
        """
        if not self._enabled:
            return
        scale, tracker = self._tensors("update")
        with no_grad():
            if new_scale is not None:
                self._scale = self._given(new_scale)
            else:
                self._follow(scale, tracker)
        self._progress = {}

    def _follow(self, scale: Tensor, tracker: Tensor) -> None:
        """Change the scale by the overflows since the last update."""
        found = [each.found_inf for each in self._progress.values() if each.found_inf is not None]
        if not found:
            raise RuntimeError(
                "No inf checks were recorded prior to update.\n  hint: call step() before update()"
            )
        overflowed = gt.stack(found).sum() > 0
        grows = tracker + 1 == self._growth_interval
        grown = scale * self._growth_factor
        # A scale that would become infinite stays.
        grown = gt.where(grows & grown.isfinite(), grown, scale)
        # If gradients have failed, the scale and the tracker keep their values.
        kept = {"scale": scale, "tracker": tracker}
        begun = _gt.begin_step([], {self: kept})
        kept["scale"] = gt.where(overflowed, scale * self._backoff_factor, grown)
        counted = gt.where(overflowed | grows, gt.zeros_like(tracker), tracker + 1)
        kept["tracker"] = counted.to(gt.int32)
        begun.commit({self: kept})
        self._scale, self._growth_tracker = kept["scale"], kept["tracker"]

    def _given(self, new_scale: float | Tensor) -> Tensor:
        if not isinstance(new_scale, Tensor):
            return gt.full((), float(new_scale), dtype=gt.float32)
        if new_scale.numel() != 1 or new_scale.requires_grad:
            raise ValueError(
                "new_scale should be a number or a tensor of one element that requires no gradient"
            )
        return new_scale.reshape(()).to(gt.float32).clone()

    def _tensors(self, name: str) -> tuple[Tensor, Tensor]:
        if isinstance(self._scale, Tensor) and isinstance(self._growth_tracker, Tensor):
            return self._scale, self._growth_tracker
        raise RuntimeError(
            f"Attempted {name} but _scale is None.\n  hint: scaler.scale(loss).backward() comes "
            "first"
        )

    def get_scale(self) -> float:
        """Return the scale; waits for it. 1 if scaling is not enabled."""
        if not self._enabled:
            return 1.0
        return self._scale.item() if isinstance(self._scale, Tensor) else self._scale

    def _get_growth_tracker(self) -> int:
        tracker = self._growth_tracker
        return int(tracker.item()) if isinstance(tracker, Tensor) else tracker

    def get_growth_factor(self) -> float:
        """Return the factor by which the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return the factor by which the scale shrinks."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale shrinks."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Return the number of steps after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the number of steps after which the scale grows."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Return whether losses are scaled."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Return the scale and its settings; waits for them. Empty if scaling is not enabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state from `state_dict`.

        Args:
            state_dict: the result of `state_dict`, in GT or in PyTorch.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled "
                "instance of GradScaler."
            )
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        scale, tracker = state_dict["scale"], state_dict["_growth_tracker"]
        is_begun = isinstance(self._scale, Tensor)
        self._scale = gt.full((), scale, dtype=gt.float32) if is_begun else scale
        self._growth_tracker = gt.full((), tracker, dtype=gt.int32) if is_begun else tracker

    def __getstate__(self) -> dict[str, Any]:
        if self._enabled and self._progress:
            raise RuntimeError(
                "A GradScaler instance may only be pickled at the beginning of an iteration, or at "
                "the end after scaler.update()."
            )
        numbers = {"_scale": self.get_scale(), "_growth_tracker": self._get_growth_tracker()}
        return {**self.__dict__, **numbers} if self._enabled else dict(self.__dict__)
