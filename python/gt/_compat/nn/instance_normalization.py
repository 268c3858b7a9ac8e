"""Instance normalization."""

from __future__ import annotations

from typing import Any

from gt._gt import Tensor
from gt._lines import warn
from gt.nn import functional as F

from .batch_normalization import _LazyNormBase, _NormBase, check_axes


class _InstanceNorm(_NormBase):
    axes: int

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ):
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def _check_input_dim(self, input: Tensor) -> None:
        check_axes(input, self.axes + 1, self.axes + 2)

    def forward(self, input: Tensor) -> Tensor:
        """Normalize a batch, or a single sample."""
        self._check_input_dim(input)
        axis = input.ndim - self.axes - 1
        if input.shape[axis] != self.num_features:
            told = (
                f"expected input's size at dim={axis} to match num_features "
                f"({self.num_features}), but got: {input.shape[axis]}."
            )
            if self.affine:
                raise ValueError(told)
            warn(f"{told} num_features is not used because affine=False")
        if axis == 0:
            return self._normalized(input.unsqueeze(0)).squeeze(0)
        return self._normalized(input)

    def _normalized(self, input: Tensor) -> Tensor:
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing: list[str],
        unexpected: list[str],
        errors: list[str],
    ) -> None:
        # States without a version are from a time when running statistics were always kept.
        if local_metadata.get("version") is None and not self.track_running_stats:
            names = [prefix + name for name in ("running_mean", "running_var")]
            found = [name for name in names if name in state_dict]
            if found:
                kind = type(self).__name__
                errors.append(
                    f"Unexpected running stats buffer(s) {found} for {kind} with "
                    f"track_running_stats=False\n\thint: remove them from the state, or make the "
                    f"{kind} with track_running_stats=True"
                )
                for name in found:
                    del state_dict[name]
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing, unexpected, errors
        )


class InstanceNorm1d(_InstanceNorm):
    """Normalization of each channel of each sample over its length (Ulyanov et al., 2016).

    Args:
        num_features: the number of channels.
        eps: added to the variance.
        momentum: the weight of a batch in the running statistics.
        affine: whether the normalized channels are scaled and shifted by parameters.
        track_running_stats: whether running statistics are kept and used in evaluation mode.
        device: accepted as in PyTorch; every device is the cluster.
        dtype: the parameters' dtype.
        bias: whether channels are also shifted, with `affine`.

    The input is (batch, channels, length) or (channels, length).

    >>> gt.nn.InstanceNorm1d(3)(gt.randn(8, 3, 5)).shape
    (8, 3, 5)
    """

    axes = 1


class InstanceNorm2d(_InstanceNorm):
    """Instance norm of images (batch, channels, height, width); see `InstanceNorm1d`."""

    axes = 2


class InstanceNorm3d(_InstanceNorm):
    """Instance norm of volumes (batch, channels, depth, height, width)."""

    axes = 3


class LazyInstanceNorm1d(_LazyNormBase, InstanceNorm1d):
    """An `InstanceNorm1d` that infers `num_features` from the first input."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNormBase, InstanceNorm2d):
    """An `InstanceNorm2d` that infers `num_features` from the first input."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNormBase, InstanceNorm3d):
    """An `InstanceNorm3d` that infers `num_features` from the first input."""

    cls_to_become = InstanceNorm3d
