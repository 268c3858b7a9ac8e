"""Losses and activations as functions."""

from gt import _gt
from gt._gt import Tensor
from gt.autograd import Function


def relu(x: Tensor) -> Tensor:
    """max(x, 0)."""
    return x.relu()


def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return x.sigmoid()


def tanh(x: Tensor) -> Tensor:
    """Hyperbolic tangent."""
    return x.tanh()


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """X times the normal distribution function of x; `approximate="tanh"` for the short form."""
    return x.gelu(approximate)


def silu(x: Tensor) -> Tensor:
    """X times sigmoid(x)."""
    return x.silu()


def softplus(x: Tensor, beta: float = 1.0) -> Tensor:
    """log(1 + exp(beta x)) / beta."""
    return x.softplus() if beta == 1 else (x * beta).softplus() / beta


def softmax(x: Tensor, dim: int = -1) -> Tensor:
    """exp(x) over its sum along an axis."""
    return x.softmax(dim)


def log_softmax(x: Tensor, dim: int = -1) -> Tensor:
    """Give the logarithm of softmax."""
    return x.log_softmax(dim)


def dropout(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Set each element to zero with probability p, and scale the rest by 1 / (1 - p)."""
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: the probability is {p}, expected 0 to 1")
    if not training or p == 0:
        return x
    if p == 1:
        return x * 0
    keep = _gt.rand_like(x) >= p
    return x * keep * (1 / (1 - p))


def _reduced(values: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return values.mean()
    if reduction == "sum":
        return values.sum()
    if reduction == "none":
        return values
    raise ValueError(f"reduction is '{reduction}', expected 'mean', 'sum' or 'none'")


def _same_shape(loss: str, prediction: Tensor, target: Tensor) -> None:
    if prediction.shape != target.shape:
        raise ValueError(
            f"{loss}: prediction of shape {prediction.shape} and target of shape {target.shape} "
            "must be alike\n  hint: broadcasting would compare every pair; reshape one of them"
        )


def mse_loss(prediction: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Squared differences of two tensors of one shape."""
    _same_shape("mse_loss", prediction, target)
    difference = prediction - target
    return _reduced(difference * difference, reduction)


class _BinaryCrossEntropy(Function):
    """-(y log p + (1 - y) log(1 - p)), with PyTorch's bounds at p = 0 and p = 1."""

    @staticmethod
    def forward(ctx, p, y):
        ctx.save_for_backward(p, y)
        log_p, log_rest = p.log().clamp(min=-100.0), (-p).log1p().clamp(min=-100.0)
        return -(y * log_p + (1 - y) * log_rest)

    @staticmethod
    def backward(ctx, grad):
        p, y = ctx.saved_tensors
        by_p = grad * (p - y) / (p * (1 - p)).clamp(min=1e-12)
        return by_p, grad * ((-p).log1p() - p.log()) if ctx.needs_input_grad[1] else None


def binary_cross_entropy(
    prediction: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None
) -> Tensor:
    """-(y log p + (1 - y) log(1 - p)) for probabilities p and targets y of one shape.

    Logarithms are cut at -100, as in PyTorch, so that p may be 0 or 1; outside of these the loss
    is not a number. `weight` multiplies each element's loss.
    """
    target = _as_target(target, prediction)
    _same_shape("binary_cross_entropy", prediction, target)
    return _reduced(_weighted(_BinaryCrossEntropy.apply(prediction, target), weight), reduction)


def binary_cross_entropy_with_logits(
    logits: Tensor,
    target: Tensor,
    reduction: str = "mean",
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Binary cross entropy of sigmoid(logits), exact for logits of any size.

    `weight` multiplies each element's loss, `pos_weight` the part of its positive target.
    """
    target = _as_target(target, logits)
    _same_shape("binary_cross_entropy_with_logits", logits, target)
    # -log sigmoid(x) is softplus(-x), and -log(1 - sigmoid(x)) is softplus(-x) + x.
    missed = (-logits).softplus()
    if pos_weight is not None:
        missed = missed * (1 + (pos_weight - 1) * target)
    return _reduced(_weighted((1 - target) * logits + missed, weight), reduction)


def _as_target(target: Tensor, prediction: Tensor) -> Tensor:
    """A target given as a list or array, in the prediction's dtype."""
    if isinstance(target, Tensor):
        return target
    return _gt.tensor_beside(prediction, target, dtype=prediction.dtype)


def _weighted(loss: Tensor, weight: Tensor | None) -> Tensor:
    return loss if weight is None else loss * weight


def layer_norm(
    x: Tensor,
    normalized_shape: int | tuple[int, ...],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """(x - mean) / sqrt(var + eps) over the last axes (Ba et al., 2016), scaled and shifted."""
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if x.shape[x.ndim - len(shape) :] != shape:
        raise ValueError(f"layer_norm: the last axes of shape {x.shape} are not {shape}")
    axes = tuple(range(-len(shape), 0))
    # Squares of 16-bit floats soon leave their range.
    wide = x.float() if x.dtype.itemsize == 2 else x
    centered = wide - wide.mean(axes, keepdims=True)
    out = centered * ((centered * centered).mean(axes, keepdims=True) + eps).rsqrt()
    out = out if weight is None else out * weight
    out = out if bias is None else out + bias
    return out.to(x.dtype)


def embedding(indices: Tensor, weight: Tensor) -> Tensor:
    """Give the rows of `weight` at integer indices; their axes come before the row's."""
    if indices.dtype.is_floating_point or indices.dtype == "bool":
        raise TypeError(
            f"embedding: indices must be integers, these are {indices.dtype.name}\n"
            "  hint: gt.tensor([...], dtype=gt.int64)"
        )
    rows = weight.index_select(0, indices.long().reshape(-1))
    return rows.reshape(*indices.shape, *weight.shape[1:])


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`x @ weight.T + bias`."""
    out = x @ weight.T
    return out if bias is None else out + bias


def one_hot(target: Tensor, num_classes: int) -> Tensor:
    """1 at each class index, 0 elsewhere, along a new last axis; int64."""
    classes = _gt.arange_beside(target, num_classes)
    return (target.unsqueeze(-1) == classes).long()


def cross_entropy_loss(
    logits: Tensor,
    target: Tensor,
    reduction: str = "mean",
    *,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross entropy of logits, whose classes stand along axis 1 (axis 0 of a single sample).

    The target holds class indices (integers, the logits' shape without the class axis) or
    probabilities (floats of the logits' shape). `weight` has a factor for each class. Samples
    whose class is `ignore_index` do not count; what PyTorch assumes, -100, must be said, since it
    takes counting them all. `label_smoothing` is the share of each target that is spread over all
    classes.
    """
    if not isinstance(target, Tensor):
        dtype = None if hasattr(target, "dtype") else "int64"
        target = _gt.tensor_beside(logits, target, dtype=dtype)
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"label_smoothing is {label_smoothing}, expected 0 to 1")
    axis = 0 if logits.ndim == 1 else 1
    if target.dtype.is_floating_point and target.ndim == logits.ndim - 1:
        raise TypeError(
            f"cross_entropy_loss: class indices must be integers, these are {target.dtype.name}\n"
            "  hint: gt.tensor([...], dtype=gt.int64), or target.long()"
        )
    if weight is not None:
        if weight.shape != logits.shape[axis : axis + 1]:
            raise ValueError(
                f"cross_entropy_loss: weight of shape {weight.shape} does not fit "
                f"{logits.shape[axis]} classes"
            )
        weight = weight.reshape([-1] + [1] * (logits.ndim - axis - 1))
    log_p = logits.log_softmax(axis)
    if target.dtype.is_floating_point:
        _same_shape("cross_entropy_loss", logits, target)
        if label_smoothing:
            target = target * (1 - label_smoothing) + label_smoothing / logits.shape[axis]
        return _reduced(-_weighted(log_p * target, weight).sum(axis), reduction)
    expected = logits.shape[:axis] + logits.shape[axis + 1 :]
    if target.shape != expected:
        raise ValueError(
            f"cross_entropy_loss: class indices of shape {target.shape} do not fit logits of "
            f"shape {logits.shape}, expected {expected}"
        )
    return _of_classes(log_p, target.long(), axis, reduction, weight, ignore_index, label_smoothing)


def _of_classes(log_p, target, axis, reduction, weight, ignore_index, smoothing) -> Tensor:
    """Cross entropy against class indices; a mean is over what the samples count together."""
    counted = None if ignore_index is None else target != ignore_index
    index = target if counted is None else target.masked_fill(~counted, 0)
    index = index.unsqueeze(axis)
    loss = -log_p.gather(axis, index)
    share = None
    if weight is not None:
        share = weight.expand(log_p.shape).gather(axis, index)
        loss = loss * share
    if smoothing:
        spread = _weighted(log_p, weight).mean(axis, keepdims=True)
        loss = loss * (1 - smoothing) - spread * smoothing
    loss = loss.squeeze(axis)
    if counted is not None:
        # Not times 0: what does not count may be infinite.
        loss = loss.masked_fill(~counted, 0)
    if reduction != "mean" or (share is None and counted is None):
        return _reduced(loss, reduction)
    counts = _gt.ones_like(loss) if share is None else share.squeeze(axis)
    return loss.sum() / (counts if counted is None else counts * counted).sum()


cross_entropy = cross_entropy_loss
