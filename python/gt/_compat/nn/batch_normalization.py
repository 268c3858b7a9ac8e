"""Batch normalization."""

from __future__ import annotations

from typing import Any

import gt
from gt._gt import Tensor
from gt.nn import functional as F

from . import init
from .lazy import LazyModuleMixin, UninitializedBuffer, UninitializedParameter
from .module import Module
from .parameter import Parameter
from .sizes import sizes


class _NormBase(Module):
    """The common base of normalizations with parameters and running statistics per channel."""

    _version = 2

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ):
        super().__init__()
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        sizes("num_features", num_features, 1)
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            parameter = Parameter(gt.empty((num_features,), **made)) if wanted else None
            self.register_parameter(name, parameter)
        if track_running_stats:
            self.register_buffer("running_mean", gt.zeros((num_features,), **made))
            self.register_buffer("running_var", gt.ones((num_features,), **made))
            self.register_buffer("num_batches_tracked", _no_batches())
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Reset the running statistics."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Set weights to 1 and biases to 0, and reset the running statistics."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *rest: Any
    ) -> None:
        # States of version 1 have no count of batches.
        version = local_metadata.get("version")
        if (version is None or version < 2) and self.track_running_stats:
            state_dict.setdefault(f"{prefix}num_batches_tracked", self.num_batches_tracked)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


def _no_batches() -> Tensor:
    return gt.zeros((), dtype="int64")


def check_axes(input: Tensor, *expected: int) -> None:
    """Raise ValueError for an input whose number of axes is not expected."""
    if input.ndim not in expected:
        wanted = " or ".join(f"{axes}D" for axes in expected)
        raise ValueError(f"expected {wanted} input (got {input.ndim}D input)")


class _BatchNorm(_NormBase):
    def forward(self, input: Tensor) -> Tensor:
        """Normalize by the batch while training, by the running statistics otherwise."""
        self._check_input_dim(input)
        momentum: Any = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                # The mean over all batches so far; a tensor, so that nothing waits for its value.
                momentum = 1.0 / self.num_batches_tracked.double()
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        tracked = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if tracked else None,
            self.running_var if tracked else None,
            self.weight,
            self.bias,
            by_batch,
            momentum,
            self.eps,
        )


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """The common base of normalizations that infer the number of channels."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ):
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        self.affine, self.track_running_stats = affine, track_running_stats
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        if affine:
            self.weight = UninitializedParameter(**made)
            if bias:
                self.bias = UninitializedParameter(**made)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**made)
            self.running_var = UninitializedBuffer(**made)
            self.num_batches_tracked = _no_batches()

    def reset_parameters(self) -> None:
        """Initialize the parameters and statistics, if they have shapes."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Infer the number of channels from an input, and initialize the parameters."""
        if self.has_uninitialized_params():
            self.num_features = input.shape[1]
            for tensor in (self.weight, self.bias, self.running_mean, self.running_var):
                if tensor is not None:
                    tensor.materialize((self.num_features,))
            self.reset_parameters()


class BatchNorm1d(_BatchNorm):
    """Normalization of each channel over a batch (Ioffe and Szegedy, 2015).

    Args:
        num_features: the number of channels, axis 1 of the input.
        eps: added to the variance.
        momentum: the weight of a batch in the running statistics; None for the mean of all batches.
        affine: whether the normalized channels are scaled and shifted by parameters.
        track_running_stats: whether running statistics are kept and used in evaluation mode.
        device: accepted as in PyTorch; every device is the cluster.
        dtype: the parameters' dtype.
        bias: whether channels are also shifted, with `affine`.

    The input is (batch, channels) or (batch, channels, length).

    >>> gt.nn.BatchNorm1d(3)(gt.randn(8, 3)).shape
    (8, 3)
    """

    def _check_input_dim(self, input: Tensor) -> None:
        check_axes(input, 2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch norm of images (batch, channels, height, width); arguments as of `BatchNorm1d`."""

    def _check_input_dim(self, input: Tensor) -> None:
        check_axes(input, 4)


class BatchNorm3d(_BatchNorm):
    """Batch norm of volumes (batch, channels, depth, height, width)."""

    def _check_input_dim(self, input: Tensor) -> None:
        check_axes(input, 5)


class LazyBatchNorm1d(_LazyNormBase, BatchNorm1d):
    """A `BatchNorm1d` that infers `num_features` from the first input."""

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNormBase, BatchNorm2d):
    """A `BatchNorm2d` that infers `num_features` from the first input."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNormBase, BatchNorm3d):
    """A `BatchNorm3d` that infers `num_features` from the first input."""

    cls_to_become = BatchNorm3d


class SyncBatchNorm(_BatchNorm):
    """Batch norm over the whole batch on any number of workers, as every batch norm in GT.

    A program sees a batch as one tensor, so there is nothing to synchronize: this class exists for
    programs that use it. Inputs have two axes or more. `process_group` is only stored: a process
    group in GT always consists of all workers of the session.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ):
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ValueError(f"expected at least 2D input (got {input.ndim}D input)")
        if input.shape[1] == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Replace each batch norm in a module by a `SyncBatchNorm` with the same tensors."""
        converted = module
        if isinstance(module, _BatchNorm):
            options = (module.affine, module.track_running_stats, process_group)
            converted = SyncBatchNorm(
                module.num_features,
                module.eps,
                module.momentum,
                *options,
                bias=module.bias is not None,
            )
            with gt.no_grad():
                for name in ("weight", "bias", "running_mean", "running_var"):
                    setattr(converted, name, getattr(module, name))
            converted.num_batches_tracked = module.num_batches_tracked
            converted.training = module.training
        for name, child in module.named_children():
            converted._modules[name] = cls.convert_sync_batchnorm(child, process_group)
        return converted
