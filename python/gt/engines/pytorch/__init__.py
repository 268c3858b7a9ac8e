"""PyTorch: one operation after another, or whole plans by Inductor; on CPUs and GPUs."""

from gt.engines.pytorch.engine import PyTorchEngine

__all__ = ["PyTorchEngine"]
