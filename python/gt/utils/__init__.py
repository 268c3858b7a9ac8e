"""What PyTorch has in `torch.utils`."""

from gt import data
from gt.utils import checkpoint

__all__ = ["checkpoint", "data"]
