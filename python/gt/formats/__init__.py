"""Files of tensors: GT's own, safetensors, NumPy's `.npz` and PyTorch's `.pt`."""

from gt._public import show_callers
from gt.formats.files import load, save

__all__ = ["load", "save"]

show_callers(globals())
