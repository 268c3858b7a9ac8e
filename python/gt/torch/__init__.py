"""PyTorch programs on GT: after `import gt.torch`, the device "cluster" is GT.

    >>> import torch
    >>> import gt.torch
    >>> model = torch.nn.Linear(4, 2).to("cluster")
    >>> model(torch.ones(3, 4, device="cluster")).shape
    torch.Size([3, 2])

PyTorch keeps modules, autograd and optimizers. Each of its operations becomes an instruction of
GT's current session, so `gt.connect`, `gt.Session` and `gt.signal.context` mean what they mean in
programs of GT's own. `torch.cluster` is what `torch.cuda` is for a GPU.
"""

from __future__ import annotations

#: The releases of PyTorch that the device is tested with.
TESTED = ("2.13", "2.14", "2.15")

try:
    import torch as _torch
except ImportError as error:
    raise ImportError(
        f"gt.torch needs PyTorch, which cannot be imported: {error}\n"
        "  hint: pip install 'gt-tensor[torch]'"
    ) from error


def _check_release(release: str) -> None:
    """Refuse a PyTorch that is too old."""
    oldest = tuple(map(int, TESTED[0].split(".")))
    given = tuple(map(int, release.split("+")[0].split(".")[:2]))
    if given < oldest:
        raise ImportError(
            f"gt.torch needs PyTorch {TESTED[0]} or newer, and this is {release}\n"
            "  hint: pip install -U 'gt-tensor[torch]'"
        )


_check_release(_torch.__version__)

from gt.torch import setup as _setup  # noqa: E402
from gt.torch.bridge import from_torch, to_torch  # noqa: E402
from gt.torch.parallel import parallelize_module  # noqa: E402

_setup.run()

__all__ = ["TESTED", "from_torch", "parallelize_module", "to_torch"]
