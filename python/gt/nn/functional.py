"""Losses and activations as functions."""

from gt import _gt
from gt._gt import Tensor


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


def softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x))."""
    return x.softplus()


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


def binary_cross_entropy(prediction: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """-(y log p + (1 - y) log(1 - p)) for probabilities p and targets y of one shape.

    Logarithms are cut at -100, as in PyTorch, so that p may be 0 or 1.
    """
    _same_shape("binary_cross_entropy", prediction, target)
    # At 0 and 1 the loss is a constant: without that its gradient would be 0 times infinity.
    at_zero, at_one = prediction <= 0, prediction >= 1
    inside = _gt.where(at_zero | at_one, 0.5, prediction)
    log_p = inside.log().clamp(min=-100.0)
    log_rest = (-inside).log1p().clamp(min=-100.0)
    loss = -(target * log_p + (1 - target) * log_rest)
    edge = 100.0 * (target * at_zero + (1 - target) * at_one)
    return _reduced(_gt.where(at_zero | at_one, edge, loss), reduction)


def binary_cross_entropy_with_logits(
    logits: Tensor, target: Tensor, reduction: str = "mean"
) -> Tensor:
    """Binary cross entropy of sigmoid(logits), exact for logits of any size."""
    _same_shape("binary_cross_entropy_with_logits", logits, target)
    # max(x, 0) - x y + log(1 + exp(-|x|))
    return _reduced(logits.relu() - logits * target + (-logits.abs()).softplus(), reduction)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`x @ weight.T + bias`."""
    out = x @ weight.T
    return out if bias is None else out + bias


def one_hot(target: Tensor, num_classes: int) -> Tensor:
    """1 at each class index, 0 elsewhere, along a new last axis; int64."""
    classes = _gt.arange(num_classes)
    return (target.unsqueeze(-1) == classes).long()


def cross_entropy_loss(logits: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Cross entropy of logits, whose classes stand along axis 1 (axis 0 of a single sample).

    The target holds class indices (integers, the logits' shape without the class axis) or
    probabilities (floats of the logits' shape).
    """
    if not isinstance(target, Tensor):
        target = _gt.tensor(target, dtype=None if hasattr(target, "dtype") else "int64")
    axis = 0 if logits.ndim == 1 else 1
    if target.dtype.is_floating_point and target.ndim == logits.ndim - 1:
        raise TypeError(
            f"cross_entropy_loss: class indices must be integers, these are {target.dtype.name}\n"
            "  hint: gt.tensor([...], dtype=gt.int64), or target.long()"
        )
    log_p = logits.log_softmax(axis)
    if target.dtype.is_floating_point:
        _same_shape("cross_entropy_loss", logits, target)
        return _reduced(-(log_p * target).sum(axis), reduction)
    expected = logits.shape[:axis] + logits.shape[axis + 1 :]
    if target.shape != expected:
        raise ValueError(
            f"cross_entropy_loss: class indices of shape {target.shape} do not fit logits of "
            f"shape {logits.shape}, expected {expected}"
        )
    picked = log_p.gather(axis, target.long().unsqueeze(axis)).squeeze(axis)
    return _reduced(-picked, reduction)


cross_entropy = cross_entropy_loss
