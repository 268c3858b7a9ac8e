"""Which entries of PyTorch's operator database count, and in which group each is.

How it is counted: PyTorch 2.15 with SciPy has 703 entries. Those that take float32 on a CPU are
678, and these are the number that GT is measured by:

    torch and Tensor  406   `torch.X`, `Tensor.X`
    nn.functional     115
    linalg             46
    fft                20
    others             91   special 35, masked 19, signal.windows 11, names with a leading
                            underscore 17 (`__radd__`, `_softmax_backward_data`), jiterator 5,
                            sparse 2, torch.ops.aten 2

Of the other 25, 20 take integers, bools or complex numbers alone (`bitwise_and`, `imag`). They are
checked with these and shown in a line of their own. 5 take no dtype on a CPU, see `LEFT_OUT`.
"""

import re

import torch
from torch.testing._internal.common_methods_invocations import op_db

GROUPS = ("torch and Tensor", "nn.functional", "linalg", "fft", "others")
WITHOUT_FLOAT32 = "without float32"

# The dtypes to check an entry with: the first that it takes.
DTYPES = (torch.float32, torch.int64, torch.bool, torch.complex64)

# Neither counted nor tried, since PyTorch cannot run them on a CPU with any dtype of `DTYPES`.
LEFT_OUT = {
    "torch._scaled_mm": "takes 8-bit floats alone",
    "torch._scaled_mm_v2": "takes 8-bit floats alone",
    "torch.ops.aten._flash_attention_forward": "a kernel of PyTorch for GPUs",
    "torch.ops.aten._efficient_attention_forward": "a kernel of PyTorch for GPUs",
    "nn.functional.batch_norm/without_cudnn": "a way through a library for GPUs",
}

# Counted as failing, without the intention to support them.
NOT_INTENDED = (
    (re.compile(r"sparse\.|to_sparse$"), "GT has no sparse tensors"),
    (re.compile(r"jiterator_"), "CUDA source as an argument; PyTorch cannot run it on a CPU"),
)

# Values that nobody promises: shape and dtype are compared.
EMPTY = {
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
}

# Drawn numbers: shape, dtype, the seed and the distribution are compared. The samples of other
# entries are random where PyTorch gives something else with another seed.
RANDOM = {
    "bernoulli",
    "cauchy",
    "exponential",
    "geometric",
    "log_normal",
    "multinomial",
    "nn.functional.alpha_dropout",
    "nn.functional.dropout",
    "nn.functional.dropout2d",
    "nn.functional.dropout3d",
    "nn.functional.feature_alpha_dropout/with_train",
    "nn.functional.fractional_max_pool2d",
    "nn.functional.fractional_max_pool3d",
    "nn.functional.rrelu",
    "normal",
    "normal/in_place",
    "normal/number_mean",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "uniform",
}

# Several right answers, as the signs of eigenvectors are free: the entry's own function, which
# removes that freedom, is applied to the results before they are compared.
SEVERAL_ANSWERS = {
    "linalg.eig",
    "linalg.eigh",
    "linalg.svd",
    "pca_lowrank",
    "svd",
    "svd_lowrank",
}


def key(op) -> str:
    """Give an entry's name, with its variant: `round/decimals_0`."""
    return f"{op.name}/{op.variant_test_name}" if op.variant_test_name else op.name


def entries() -> dict:
    """Give all entries that are tried, by their names."""
    found = {key(op): op for op in op_db if key(op) not in LEFT_OUT}
    return dict(sorted(found.items()))


def takes_float32(op) -> bool:
    """Whether an entry is among those that GT is measured by."""
    return op.supports_dtype(torch.float32, "cpu")


def group(op) -> str:
    """Give the group of an entry."""
    if not takes_float32(op):
        return WITHOUT_FLOAT32
    first = op.name.rpartition(".")[0]
    if first in GROUPS:
        return first
    return "others" if first or op.name.startswith(("_", "jiterator_")) else GROUPS[0]


def dtype_of(op, asked: torch.dtype) -> torch.dtype:
    """Give the dtype to check an entry with: the one asked for, or the first that it takes."""
    return next(dtype for dtype in (asked, *DTYPES) if op.supports_dtype(dtype, "cpu"))


def not_intended(name: str) -> str | None:
    """Say why GT does not intend to support an entry, if so."""
    return next((why for pattern, why in NOT_INTENDED if pattern.match(name)), None)
