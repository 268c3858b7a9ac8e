"""`torch.serialization` for PyTorch programs: files, and which classes they may name."""

from gt._public import show_callers
from gt.formats import load, save
from gt.formats.classes import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)

__all__ = [
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "load",
    "safe_globals",
    "save",
]


show_callers(globals())
