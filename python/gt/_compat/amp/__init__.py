"""Automatic mixed precision: products in lower precision, and gradients that do not underflow."""

from gt._public import show_callers

from .autocast_mode import (
    autocast,
    custom_bwd,
    custom_fwd,
    is_autocast_available,
)
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

show_callers(globals())
