"""What PyTorch has in `torch.utils`."""

from gt.utils import checkpoint, data, dlpack

__all__ = ["checkpoint", "data", "dlpack"]
