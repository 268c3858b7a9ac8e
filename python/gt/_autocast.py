"""The precision of composites under autocast.

Primitives are cast where they are issued. A composite is cast as one operation, selected by its
name as in PyTorch: its input tensors are cast, and autocast is off while it runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from gt import _gt
from gt._gt import Tensor


class _State(threading.local):
    """The dtype that matrix products are computed in on this thread; None if autocast is off."""

    lower: Any = None


state = _State()


def set_lower(dtype: Any) -> Any:
    """Set the dtype of matrix products on this thread, and return the previous one."""
    before, state.lower = state.lower, dtype
    _gt.set_autocast(dtype)
    return before


def _names(namespace: str, text: str) -> set[str]:
    return {f"{namespace}.{name}" for name in text.split()}


_NN = "gt.nn.functional"
_CONVOLUTIONS = "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d"

#: Computed in the lower precision.
_LOWER = (
    _names("gt", f"{_CONVOLUTIONS} convolution matmul mm bmm mv addmm addmv addr baddbmm addbmm")
    | _names("gt", "rnn_tanh_cell rnn_relu_cell lstm_cell gru_cell rnn_tanh rnn_relu lstm gru")
    | _names("gt", "chain_matmul linalg.matmul linalg.multi_dot linalg.vecdot prelu")
    | _names(_NN, f"{_CONVOLUTIONS} linear prelu scaled_dot_product_attention")
)

#: Computed in float32, like all of `gt.linalg` and `gt.fft`.
_FULL = (
    _names("gt", "cdist cosine_similarity cumprod cumsum dist group_norm layer_norm log_softmax")
    | _names("gt", "native_layer_norm native_group_norm norm nansum pdist polar prod reciprocal")
    | _names("gt", "renorm softmax softplus sum stft istft quantile nanquantile matrix_exp")
    | _names("gt", "matrix_power cholesky cholesky_inverse cholesky_solve qr svd lu lu_solve")
    | _names("gt", "lu_unpack triangular_solve svd_lowrank pca_lowrank geqrf orgqr ormqr det")
    | _names("gt", "slogdet logdet inverse pinverse")
    | _names("gt.special", "softmax log_softmax expm1 exp2 log1p xlog1py erfinv")
    | _names(_NN, "binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss")
    | _names(_NN, "cosine_similarity cross_entropy cross_entropy_loss ctc_loss gaussian_nll_loss")
    | _names(_NN, "group_norm hinge_embedding_loss huber_loss kl_div l1_loss layer_norm")
    | _names(_NN, "log_softmax margin_ranking_loss mse_loss multi_margin_loss normalize")
    | _names(_NN, "multilabel_margin_loss multilabel_soft_margin_loss nll_loss pdist")
    | _names(_NN, "pairwise_distance poisson_nll_loss smooth_l1_loss soft_margin_loss softmax")
    | _names(_NN, "softmin softplus triplet_margin_loss triplet_margin_with_distance_loss")
)

#: Computed in the widest dtype of their input tensors.
_WIDEST = (
    _names("gt", "addcdiv addcmul bilinear cross linalg.cross dot vdot grid_sampler index_put")
    | _names("gt", "scatter_add tensordot cat concat concatenate stack")
    | _names(_NN, "bilinear grid_sample")
)

#: Not cast as a whole: autocast applies to the operations they consist of.
_OPEN = _names(
    "gt", "einsum inner Tensor.dim Tensor.view Tensor.reshape_as Tensor.view_as"
) | _names(_NN, "multi_head_attention_forward linear_cross_entropy gumbel_softmax")


def call(name: str, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
    """Call a composite under autocast.

    Args:
        name: its qualified name, such as `gt.nn.functional.linear`.
        function: its implementation.
        args: its positional arguments.
        kwargs: its keyword arguments; with a `dtype` among them nothing is cast.
    """
    if name in _OPEN:
        return function(*args, **kwargs)
    lower = state.lower
    dtype = None if kwargs.get("dtype") is not None else _wanted(name, lower, (args, kwargs))
    set_lower(None)
    try:
        if dtype is not None:
            args, kwargs = cast(args, dtype), cast(kwargs, dtype)
        return function(*args, **kwargs)
    finally:
        set_lower(lower)


def cast(value: Any, dtype: Any) -> Any:
    """Cast float tensors except float64, also inside lists, tuples and dicts."""
    if isinstance(value, Tensor):
        return value.to(dtype) if _takes_part(value) else value
    if isinstance(value, dict):
        return {key: cast(each, dtype) for key, each in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(cast(each, dtype) for each in value)
    return value


def _wanted(name: str, lower: Any, given: Any) -> Any:
    """Return the dtype to cast an operation's tensors to, or None to leave them as they are."""
    if name in _LOWER:
        return lower
    if name in _WIDEST:
        return _widest(given)
    if name in _FULL or name.startswith(("gt.linalg.", "gt.fft.")):
        return _gt.float32
    return None


def _widest(given: Any) -> Any:
    dtypes = {tensor.dtype for tensor in _tensors(given) if _takes_part(tensor)}
    return dtypes.pop() if len(dtypes) == 1 else _gt.float32 if dtypes else None


def _tensors(given: Any) -> list[Tensor]:
    if isinstance(given, Tensor):
        return [given]
    if isinstance(given, dict):
        given = list(given.values())
    return (
        [each for one in given for each in _tensors(one)]
        if isinstance(given, (list, tuple))
        else []
    )


def _takes_part(tensor: Tensor) -> bool:
    return tensor.dtype in (_gt.float32, _gt.float16, _gt.bfloat16)
