"""`torch.serialization` for PyTorch programs: `save` and `load`."""

from gt.formats import load, save

__all__ = ["load", "save"]
