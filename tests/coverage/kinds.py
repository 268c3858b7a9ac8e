"""The kinds of checks: the samples of one dtype, and gradients of gradients with float64."""

import os
import zlib

import entries
import torch

# The first is what GT is measured by.
DTYPES = ("float32", "float64", "bfloat16", "float16", "int64", "bool", "complex64")
SECOND = "second"
KINDS = (*DTYPES, SECOND)

# So many samples of an entry are tried for gradients of gradients, spread over all of them.
SECOND_SAMPLES = 5

# Of the kinds beyond the first, the tests check one entry in so many, which the seed chooses.
PARTS = 3
SEED = int(os.environ.get("GT_COVERAGE_SEED", "0"))


def dtype_of(kind: str) -> torch.dtype:
    """Give the dtype that a kind of check asks for."""
    return torch.float64 if kind == SECOND else getattr(torch, kind)


def title(kind: str) -> str:
    """Give what a table says of a kind."""
    return "gradients of gradients" if kind == SECOND else kind


def names(kind: str) -> list[str]:
    """Give the entries that a kind is for; of the first kind, those without its dtype, too."""
    return [name for name, op in entries.entries().items() if _takes(op, kind)]


def _takes(op, kind: str) -> bool:
    if kind == DTYPES[0]:
        return True
    if kind == SECOND and not (op.supports_autograd and op.supports_gradgrad):
        return False
    return op.supports_dtype(dtype_of(kind), "cpu")


def in_part(kind: str, name: str) -> bool:
    """Whether an entry is in the part that the seed chooses."""
    return zlib.crc32(f"{SEED} {kind} {name}".encode()) % PARTS == 0
