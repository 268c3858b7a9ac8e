"""Averages of weights over training: stochastic weight averaging and moving averages."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import gt
from gt._gt import Tensor
from gt._public import show_callers
from gt.nn.module import Module

from .lr_scheduler.base import LRScheduler, cosine, for_each_group
from .optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _checked_decay(decay: float) -> float:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )
    return decay


def get_ema_avg_fn(decay: float = 0.999) -> Callable[[Tensor, Tensor, Any], Tensor]:
    """Return the function of a moving average: decay * average + (1 - decay) * value."""
    decay = _checked_decay(decay)

    def average(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return decay * ema_param + (1 - decay) * current_param

    return average


def get_swa_avg_fn() -> Callable[[Tensor, Tensor, Any], Tensor]:
    """Return the function that updates the mean of all values."""

    def average(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return average


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[Any, Any, Any], None]:
    """Return the function that updates a list of exponential moving averages in place."""
    decay = _checked_decay(decay)

    def average(ema_param_list: Any, current_param_list: Any, _: Any) -> None:
        with gt.no_grad():
            for average, value in zip(ema_param_list, current_param_list, strict=True):
                if average.is_floating_point() or average.is_complex():
                    average.lerp_(value, 1 - decay)
                else:
                    average.copy_(average * decay + value * (1 - decay))

    return average


def get_swa_multi_avg_fn() -> Callable[[Any, Any, Any], None]:
    """Return the function that updates a list of means in place."""

    def average(averaged_param_list: Any, current_param_list: Any, num_averaged: Any) -> None:
        with gt.no_grad():
            for average, value in zip(averaged_param_list, current_param_list, strict=True):
                average.copy_(average + (value - average) / (num_averaged + 1))

    return average


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's parameters.

    Args:
        model: the model to copy.
        device: accepted as in PyTorch and ignored.
        avg_fn: returns the next average of the previous one, a value and the number of values.
        multi_avg_fn: updates a list of averages in place from a list of values and that number.
        use_buffers: whether buffers are averaged too; otherwise they are copied from the model.

    Without a function, the mean of all values is computed.
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[[Tensor, Tensor, Any], Tensor] | None = None,
        multi_avg_fn: Callable[[Any, Any, Any], None] | None = None,
        use_buffers: bool = False,
    ):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.add_module("module", copy.deepcopy(model))
        self.register_buffer("n_averaged", gt.tensor(0, dtype=gt.int64))
        self.avg_fn, self.multi_avg_fn = avg_fn, multi_avg_fn
        self.use_buffers = use_buffers
        self._updates = 0

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result of the averaged model."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Update the averages with the model's parameters."""
        ours, theirs = self._tensors(self), self._tensors(model)
        with gt.no_grad():
            if self._updates == 0:
                for average, value in zip(ours, theirs, strict=True):
                    average.copy_(value)
            else:
                self._average(ours, theirs)
            if not self.use_buffers:
                buffers = zip(self.module.buffers(), model.buffers(), strict=True)
                for average, value in buffers:
                    average.copy_(value)
            self.n_averaged += 1
        self._updates += 1

    def _average(self, ours: list[Tensor], theirs: list[Tensor]) -> None:
        if self.avg_fn is None:
            average_all = self.multi_avg_fn or get_swa_multi_avg_fn()
            average_all(ours, [value.detach() for value in theirs], self._updates)
            return
        for average, value in zip(ours, theirs, strict=True):
            average.copy_(self.avg_fn(average.detach(), value.detach(), self._updates))

    def _tensors(self, model: Module) -> list[Tensor]:
        model = model.module if model is self else model
        buffers = model.buffers() if self.use_buffers else ()
        return [*model.parameters(), *buffers]

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Load a state; this fetches the number of averaged values."""
        result = super().load_state_dict(*args, **kwargs)
        self._updates = int(self.n_averaged.item())
        return result


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recompute the running statistics of a model's batch norms in one pass over the data.

    Args:
        loader: the batches; if a batch is a tuple or list, its first element is the input.
        model: the model, whose momenta and training mode are restored afterwards.
        device: accepted as in PyTorch and ignored.
    """
    norms = [module for module in model.modules() if hasattr(module, "reset_running_stats")]
    momenta = {module: module.momentum for module in norms}
    if not norms:
        return
    was_training = model.training
    model.train()
    for module in norms:
        module.reset_running_stats()
        module.momentum = None  # compute the mean over all batches
    with gt.no_grad():
        for batch in loader:
            model(batch[0] if isinstance(batch, (list, tuple)) else batch)
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """A schedule that anneals the learning rate to a constant.

    Args:
        optimizer: the optimizer whose rates are set.
        swa_lr: the final rate, or one for each group.
        anneal_epochs: the number of steps of the annealing.
        anneal_strategy: "cos" or "linear".
        last_epoch: the number of steps already done, -1 for a new schedule.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ):
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        rates = for_each_group("swa_lr", optimizer, swa_lr)
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["swa_lr"] = rate
        self.anneal_epochs, self._anneal_strategy = anneal_epochs, anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """Return the fraction of the annealing that is done after a step."""
        done = max(0, min(1, step / max(1, self.anneal_epochs)))
        return 1 - cosine(1.0, 0.0, done) if self._anneal_strategy == "cos" else done

    def get_lr(self) -> list[Any]:
        """Compute the next rates."""
        self._warn_unless_stepping()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(max(0, step - 1)), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            goal = group["swa_lr"]
            start = goal if before == 1 else (group["lr"] - before * goal) / (1 - before)
            rates.append(goal * now + start * (1 - now))
        return rates


show_callers(globals())
