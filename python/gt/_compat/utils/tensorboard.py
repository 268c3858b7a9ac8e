"""`SummaryWriter`, which writes logs for TensorBoard: that of tensorboardX, or else PyTorch's.

It takes tensors of GT wherever it takes arrays. Both packages write the same files; tensorboardX
needs neither PyTorch nor TensorBoard.

    from gt.utils.tensorboard import SummaryWriter

    with SummaryWriter("runs/first") as writer:
        writer.add_scalar("loss", loss, step)
"""

try:
    from tensorboardX import SummaryWriter
except ImportError:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ImportError(
            "gt.utils.tensorboard needs a package that writes TensorBoard's logs\n"
            "  hint: pip install tensorboardX; or torch and tensorboard"
        ) from error

__all__ = ["SummaryWriter"]
