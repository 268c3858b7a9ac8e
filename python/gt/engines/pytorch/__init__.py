"""The PyTorch engine for CPUs and GPUs: single operations, and plans compiled by Inductor."""

from gt.engines.pytorch.engine import PyTorchEngine

__all__ = ["PyTorchEngine"]
