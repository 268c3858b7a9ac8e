"""`torch.ao` for PyTorch programs: GT does not quantize models."""

from . import quantization

__all__ = ["quantization"]
