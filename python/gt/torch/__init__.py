"""PyTorch programs on GT: `import gt.torch` adds the device "cluster" to PyTorch.

    >>> import torch
    >>> import gt.torch
    >>> model = torch.nn.Linear(4, 2).to("cluster")
    >>> model(torch.ones(3, 4, device="cluster")).shape
    torch.Size([3, 2])

Modules, autograd and optimizers remain PyTorch's. Each operation on the device becomes an
instruction of GT's current session, so `gt.connect`, `gt.Session` and `gt.signal.context` work as
in GT programs. `torch.cluster` corresponds to `torch.cuda`.
"""

from __future__ import annotations

import sys as _sys

#: Whether the program may have run backward passes: PyTorch was imported, and is not just loading
#: its devices.
_FOLLOWS_TORCH = not getattr(
    getattr(_sys.modules.get("torch"), "__spec__", None), "_initializing", True
)

#: The releases of PyTorch that gt.torch is tested with.
TESTED = ("2.13", "2.14", "2.15")

try:
    import torch as _torch
except ImportError as error:
    raise ImportError(
        f"gt.torch needs PyTorch, which cannot be imported: {error}\n"
        "  hint: pip install 'gt-tensor[torch]'"
    ) from error


def _check_release(release: str) -> None:
    """Raise `ImportError` if PyTorch is too old."""
    oldest = tuple(map(int, TESTED[0].split(".")))
    given = tuple(map(int, release.split("+")[0].split(".")[:2]))
    if given < oldest:
        raise ImportError(
            f"gt.torch needs PyTorch {TESTED[0]} or newer, but {release} is installed\n"
            "  hint: pip install -U 'gt-tensor[torch]'"
        )


_check_release(_torch.__version__)

from gt.torch import setup as _setup  # noqa: E402
from gt.torch.bridge import from_torch, to_torch  # noqa: E402
from gt.torch.keeping import keep, kept  # noqa: E402
from gt.torch.parallel import parallelize_module  # noqa: E402
from gt.torch.publications import publish, shared  # noqa: E402

_setup.run()
if _FOLLOWS_TORCH:
    from gt.torch import late_import as _late_import

    _late_import.register()

__all__ = [
    "TESTED",
    "from_torch",
    "keep",
    "kept",
    "parallelize_module",
    "publish",
    "shared",
    "to_torch",
]
