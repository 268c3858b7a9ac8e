"""`SummaryWriter`, which writes logs for TensorBoard: that of tensorboardX, or else PyTorch's.

It takes tensors of GT wherever it takes arrays. Both packages write the same files; tensorboardX
needs neither PyTorch nor TensorBoard.

    from gt.utils.tensorboard import SummaryWriter

    with SummaryWriter("runs/first") as writer:
        writer.add_scalar("loss", loss, step)
"""

import functools
import os
from typing import Any

from gt._arguments import brief
from gt._public import show_callers

try:
    from tensorboardX import SummaryWriter as _SummaryWriter
except ImportError:
    try:
        from torch.utils.tensorboard import SummaryWriter as _SummaryWriter
    except ImportError as error:
        raise ImportError(
            "gt.utils.tensorboard needs a package that writes TensorBoard's logs\n"
            "  hint: pip install tensorboardX; or torch and tensorboard"
        ) from error

__all__ = ["SummaryWriter"]


class SummaryWriter(_SummaryWriter):
    """Writes logs for TensorBoard: the class of the package, which takes tensors of GT."""

    @functools.wraps(_SummaryWriter.__init__)  # type: ignore[misc]  # the packages' differ
    def __init__(self, *args: Any, **options: Any) -> None:
        folder = args[0] if args else options.get("log_dir", options.get("logdir"))
        # The packages would make a folder of the name "3".
        if not isinstance(folder, (str, os.PathLike, type(None))):
            raise TypeError(f"SummaryWriter: log_dir is {brief(folder)}, expected a path or None")
        super().__init__(*args, **options)


show_callers(globals())
