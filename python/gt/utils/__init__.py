"""What PyTorch has in `torch.utils`."""

from gt.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
