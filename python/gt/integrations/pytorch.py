"""Errors of GT's that programs of PyTorch catch as PyTorch's own."""

from __future__ import annotations

import torch

import gt


class OutOfMemoryError(gt.OutOfMemoryError, torch.OutOfMemoryError):
    """The class that is raised for `gt.OutOfMemoryError` in a program that has imported PyTorch."""
