"""Losses for classification."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import InitVar
from typing import Any

import gt
from gt._gt import Tensor
from gt._lines import warn
from gt.nn import functional as F

from .forwarding import options
from .linear import Linear
from .loss import _Loss, _WeightedLoss


@options
class NLLLoss(_WeightedLoss, function=F.nll_loss):
    """The negative log likelihood: minus the input, log probabilities, at each target.

    Args:
        weight: a factor for each class; a mean is weighted by it.
        size_average: deprecated.
        ignore_index: a target class whose samples are ignored.
        reduce: deprecated.
        reduction: "mean", "sum" or "none".

    >>> log_p = gt.tensor([[0.5, 0.5], [0.25, 0.75]]).log()
    >>> gt.nn.NLLLoss(reduction="sum")(log_p, gt.tensor([0, 1], dtype=gt.int64))
    tensor(0.98082924, dtype=float32)
    """

    weight: InitVar[Tensor | None] = None
    size_average: InitVar[bool | None] = None
    ignore_index: int = -100
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"


class NLLLoss2d(NLLLoss):
    """An old name of `NLLLoss`."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ):
        warn("`NLLLoss2d` has been deprecated: NLLLoss is the same", FutureWarning)
        super().__init__(weight, size_average, ignore_index, reduce, reduction)


@options
class CrossEntropyLoss(_WeightedLoss, function=F.cross_entropy):
    """The cross entropy of logits: minus the logarithm of softmax at each target.

    Args:
        weight: a factor for each class; a mean is weighted by it.
        size_average: deprecated.
        ignore_index: a target class whose samples are ignored.
        reduce: deprecated.
        reduction: "mean", "sum" or "none".
        label_smoothing: the fraction of each target that is spread evenly over all classes.

    Targets are indices of classes, or probabilities of the input's shape.

    >>> gt.nn.CrossEntropyLoss()(gt.zeros(1, 4), gt.tensor([2], dtype=gt.int64))
    tensor(1.3862944, dtype=float32)
    """

    weight: InitVar[Tensor | None] = None
    size_average: InitVar[bool | None] = None
    ignore_index: int = -100
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"
    label_smoothing: float = 0.0


@dataclasses.dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """PyTorch's options for a linear cross entropy in chunks; results do not depend on them.

    Options are validated and stored, and have no other effect: the workers decide how to compute
    the loss.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: gt.dtype | None = None

    def __post_init__(self) -> None:
        if self.acc_policy not in ("auto", "accurate", "compact"):
            raise ValueError(
                f"invalid acc_policy: {self.acc_policy!r}; expected one of 'auto', 'accurate', "
                "'compact'"
            )
        if self.chunking_method not in (None, "auto"):
            name, colon, factor = str(self.chunking_method).partition(":")
            valid = not colon or (factor.isdigit() and int(factor) > 0)
            if name != "aspect_ratio" or not valid:
                raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        size = self.batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        if self.acc_dtype not in (None, gt.float16, gt.bfloat16, gt.float32, gt.float64):
            raise ValueError(f"acc_dtype must be None or a float dtype, got {self.acc_dtype!r}")


class LinearCrossEntropyLoss(_WeightedLoss):
    """A `Linear` layer with one output per class, followed by the cross entropy of its result.

    Args:
        in_features: the length of the input's last axis.
        num_classes: the number of classes.
        out_features: the lengths of further axes of the linear layer's result.
        bias: whether the linear layer has a bias.
        device: accepted as in PyTorch; every device is the cluster.
        dtype: the parameters' dtype.
        reduction: "mean", "sum" or "none".
        weight: a factor for each class.
        ignore_index: a target class whose samples are ignored, -100 by default.
        label_smoothing: the fraction of each target that is spread evenly over all classes.
        options: `LinearCrossEntropyOptions`; they have no effect.

    >>> loss = gt.nn.LinearCrossEntropyLoss(5, 3)
    >>> loss(gt.randn(8, 5), gt.randint(0, 3, (8,))).shape
    ()
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ):
        if weight is not None and weight.shape != (num_classes,):
            raise RuntimeError(
                f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}"
            )
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(
                f"expected label_smoothing to be in range [0, 1], got {label_smoothing}"
            )
        super().__init__(weight=weight, reduction=reduction)
        self.num_classes, self.out_features = num_classes, out_features
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing
        outputs = math.prod(out_features, start=num_classes)
        self.linear = Linear(in_features, outputs, bias=bias, device=device, dtype=dtype)
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # type: ignore[override]
        """Return the loss for the features of one sample, or of one in each row."""
        linear, shape = self.linear, (self.num_classes, *self.out_features)
        return F.linear_cross_entropy(
            input,
            linear.weight.reshape(*shape, linear.in_features),
            target,
            linear_bias=None if linear.bias is None else linear.bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
            f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )


class BCELoss(_WeightedLoss, function=F.binary_cross_entropy):
    """The binary cross entropy of probabilities; `weight` is a factor for each element.

    For inputs outside of [0, 1] the loss is NaN. PyTorch raises an error instead; GT does not,
    because that would wait for values. `GT_CHECK_NAN=1` finds the operation.
    """


class BCEWithLogitsLoss(_Loss, function=F.binary_cross_entropy_with_logits):
    """The binary cross entropy of sigmoid(input), exact for inputs of any size.

    Args:
        weight: a factor for each element.
        size_average: deprecated.
        reduce: deprecated.
        reduction: "mean", "sum" or "none".
        pos_weight: a factor for the loss of positive targets.

    >>> gt.nn.BCEWithLogitsLoss()(gt.tensor([0.0]), gt.tensor([1.0]))
    tensor(0.6931472, dtype=float32)
    """

    weight: Tensor | None
    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)


class MultiLabelSoftMarginLoss(_WeightedLoss, function=F.multilabel_soft_margin_loss):
    """The mean binary cross entropy over classes; `weight` has a factor for each class."""
