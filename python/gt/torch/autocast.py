"""`torch.autocast("cluster")`: the dtypes to which operators cast their operands.

The lists are those of PyTorch's documentation for autocast on a GPU,
<https://docs.pytorch.org/docs/stable/amp.html#autocast-op-reference>.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_KEY = torch._C.DispatchKey.AutocastPrivateUse1
_KEYS = torch._C.DispatchKeySet(_KEY)

_LOWER = """
    addbmm addmm addmv addr baddbmm bmm chain_matmul conv1d conv2d conv3d conv_tbc
    conv_transpose1d conv_transpose2d.input conv_transpose3d.input convolution einsum gru_cell
    linalg_multi_dot linalg_vecdot linear lstm_cell matmul mm mv prelu rnn_relu_cell rnn_tanh_cell
    scaled_dot_product_attention
""".split()
_FLOAT32 = """
    acos asin binary_cross_entropy_with_logits cdist cosh cosine_embedding_loss
    cosine_similarity cumprod cumsum dist erfinv exp expm1 group_norm hinge_embedding_loss
    huber_loss kl_div l1_loss layer_norm log log10 log1p log2 log_softmax.int logsumexp
    margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss native_layer_norm
    nll_loss nll_loss2d norm.Scalar norm.ScalarOpt_dim nuclear_norm pdist poisson_nll_loss
    pow.Scalar pow.Tensor_Scalar pow.Tensor_Tensor prod prod.dim_int reciprocal renorm rsqrt sinh
    smooth_l1_loss soft_margin_loss softmax.int softplus sum sum.dim_IntList tan
    triplet_margin_loss
""".split()
_WIDEST = """
    addcdiv addcmul atan2 bilinear cross dot grid_sampler index_put scatter_add tensordot vdot
""".split()
#: Operators of the float32 list that are not cast if they are called with a dtype.
_TOLD = {
    "cumprod",
    "cumsum",
    "log_softmax.int",
    "prod",
    "prod.dim_int",
    "softmax.int",
    "sum",
    "sum.dim_IntList",
}
_FLOATS = (torch.float16, torch.bfloat16, torch.float32)

_libraries: list[torch.library.Library] = []


def register() -> None:
    """Register the casts; all other operators fall through."""
    rest = torch.library.Library("_", "IMPL")
    rest.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
    library = torch.library.Library("aten", "IMPL")
    for names, choose in ((_LOWER, _lower), (_FLOAT32, _float32), (_WIDEST, _widest)):
        for name in names:
            library.impl(name, _casting(name, choose), "AutocastPrivateUse1")
    _libraries.extend((rest, library))


def _casting(name: str, choose: Callable[[list[Any]], torch.dtype]) -> Callable[..., Any]:
    """Return a kernel that casts operands and calls the operator."""
    packet, _, overload = name.partition(".")
    operator = getattr(getattr(torch.ops.aten, packet), overload or "default")

    def kernel(*args: Any, **kwargs: Any) -> Any:
        is_told = name in _TOLD and any(
            isinstance(of, torch.dtype) for of in (*args, *kwargs.values())
        )
        with torch._C._ExcludeDispatchKeyGuard(_KEYS):
            if is_told:
                return operator(*args, **kwargs)
            dtype = choose([*_tensors((*args, *kwargs.values()))])
            named = {key: _cast(of, dtype) for key, of in kwargs.items()}
            return operator(*(_cast(of, dtype) for of in args), **named)

    return kernel


def _tensors(given: Any) -> Any:
    for one in given:
        if isinstance(one, torch.Tensor):
            yield one
        elif isinstance(one, list | tuple):
            yield from _tensors(one)


def _cast(given: Any, dtype: torch.dtype) -> Any:
    if isinstance(given, torch.Tensor):
        fits = given.dtype in _FLOATS and given.device.type == "cluster"
        return given.to(dtype) if fits else given
    if isinstance(given, list | tuple):
        return type(given)(_cast(one, dtype) for one in given)
    return given


def _lower(tensors: list[Any]) -> torch.dtype:
    return torch.get_autocast_dtype("cluster")


def _float32(tensors: list[Any]) -> torch.dtype:
    return torch.float32


def _widest(tensors: list[Any]) -> torch.dtype:
    found = {of.dtype for of in tensors if of.dtype in _FLOATS}
    return torch.float32 if torch.float32 in found else torch.get_autocast_dtype("cluster")
