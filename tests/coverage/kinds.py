"""The kinds of checks: the samples of one dtype, and gradients of gradients with float64."""

import os
import zlib

import entries
import torch

# The first is what GT is measured by.
DTYPES = ("float32", "float64", "bfloat16", "float16", "int64", "bool", "complex64")
SECOND = "second"
KINDS = (*DTYPES, SECOND)

# The number of an entry's samples that are checked for gradients of gradients, evenly spread.
SECOND_SAMPLES = 5

# Of the kinds other than the first, the tests check one entry in `PARTS`, selected by the seed.
PARTS = 3
SEED = int(os.environ.get("GT_COVERAGE_SEED", "0"))


def dtype_of(kind: str) -> torch.dtype:
    """Return the dtype of a kind of check."""
    return torch.float64 if kind == SECOND else getattr(torch, kind)


def title(kind: str) -> str:
    """Return the title of a kind in tables."""
    return "gradients of gradients" if kind == SECOND else kind


def names(kind: str) -> list[str]:
    """Return the entries of a kind; for the first kind also those that do not accept its dtype."""
    return [name for name, op in entries.entries().items() if _takes(op, kind)]


def _takes(op, kind: str) -> bool:
    if kind == DTYPES[0]:
        return True
    if kind == SECOND and not (op.supports_autograd and op.supports_gradgrad):
        return False
    return op.supports_dtype(dtype_of(kind), "cpu")


def in_part(kind: str, name: str) -> bool:
    """Return whether an entry is in the part that the seed selects."""
    return zlib.crc32(f"{SEED} {kind} {name}".encode()) % PARTS == 0
