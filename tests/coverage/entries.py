"""The entries of PyTorch's operator database that count, and the group of each.

PyTorch 2.15 with SciPy has 703 entries. GT is measured by those that accept float32 on a CPU, 678:

    torch and Tensor  406   `torch.X`, `Tensor.X`
    nn.functional     115
    linalg             46
    fft                20
    others             91   special 35, masked 19, signal.windows 11, names with a leading
                            underscore 17 (`__radd__`, `_softmax_backward_data`), jiterator 5,
                            sparse 2, torch.ops.aten 2

Of the other 25, 20 accept only integers, bools or complex numbers (`bitwise_and`, `imag`). They are
checked with these and shown in a separate row. 5 accept no dtype on a CPU: see `LEFT_OUT`.
"""

import re

import torch
from torch.testing._internal.common_methods_invocations import op_db

GROUPS = ("torch and Tensor", "nn.functional", "linalg", "fft", "others")
WITHOUT_FLOAT32 = "without float32"

# An entry is checked with the first of these dtypes that it accepts.
DTYPES = (torch.float32, torch.int64, torch.bool, torch.complex64)

# Neither counted nor checked, as PyTorch cannot run them on a CPU with any dtype of `DTYPES`.
LEFT_OUT = {
    "torch._scaled_mm": "accepts only 8-bit floats",
    "torch._scaled_mm_v2": "accepts only 8-bit floats",
    "torch.ops.aten._flash_attention_forward": "a kernel of PyTorch for GPUs",
    "torch.ops.aten._efficient_attention_forward": "a kernel of PyTorch for GPUs",
    "nn.functional.batch_norm/without_cudnn": "a variant for a GPU library",
}

# Counted as failing, but not intended to be supported.
NOT_INTENDED = (
    (re.compile(r"sparse\.|to_sparse$"), "GT has no sparse tensors"),
    (re.compile(r"jiterator_"), "CUDA source as an argument; PyTorch cannot run it on a CPU"),
)

# The values are unspecified: only shape and dtype are compared.
EMPTY = {
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
}

# Random results: shape, dtype, the effect of the seed and the distribution are compared. Samples of
# other entries count as random if PyTorch's results change with the seed.
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

# Entries with several right results, such as the signs of eigenvectors: the entry's own function
# that removes the ambiguity is applied to the results before they are compared.
SEVERAL_ANSWERS = {
    "linalg.eig",
    "linalg.eigh",
    "linalg.svd",
    "pca_lowrank",
    "svd",
    "svd_lowrank",
}


def key(op) -> str:
    """Return an entry's name with its variant: `round/decimals_0`."""
    return f"{op.name}/{op.variant_test_name}" if op.variant_test_name else op.name


def entries() -> dict:
    """Return all entries that are checked, by their names."""
    found = {key(op): op for op in op_db if key(op) not in LEFT_OUT}
    return dict(sorted(found.items()))


def takes_float32(op) -> bool:
    """Return whether an entry is among those that GT is measured by."""
    return op.supports_dtype(torch.float32, "cpu")


def group(op) -> str:
    """Return the group of an entry."""
    if not takes_float32(op):
        return WITHOUT_FLOAT32
    first = op.name.rpartition(".")[0]
    if first in GROUPS:
        return first
    return "others" if first or op.name.startswith(("_", "jiterator_")) else GROUPS[0]


def dtype_of(op, asked: torch.dtype) -> torch.dtype:
    """Return the dtype to check an entry with: `asked`, or else the first that it accepts."""
    return next(dtype for dtype in (asked, *DTYPES) if op.supports_dtype(dtype, "cpu"))


def not_intended(name: str) -> str | None:
    """Return why GT does not intend to support an entry, or None."""
    return next((why for pattern, why in NOT_INTENDED if pattern.match(name)), None)
