"""How notebooks show a tensor."""

from typing import Any

from gt._display import html
from gt._display.notebook import is_terminal
from gt._display.sizes import size_text
from gt._gt import Tensor, is_batched
from gt.ops.registry import extend_tensor


def _bundle(self: Tensor, include: Any = None, exclude: Any = None) -> dict[str, str] | None:
    """Return a tensor as text and as HTML, with its values fetched once for both.

    The text is that of `repr`. In place of values that cannot be computed, both have the error,
    with the line of its operation.

    Args:
        self: the tensor.
        include: what IPython asks for; both are returned in any case.
        exclude: what IPython does not ask for.

    Returns:
        The two by MIME type; None on a terminal, where errors have a traceback.
    """
    if is_terminal():
        return None
    try:
        shown = repr(self)
    except Exception as error:
        shown = f"{type(error).__name__}: {error}"
    bundled = {"text/plain": shown}
    # A subclass may have one of its own.
    if not hasattr(type(self), "_repr_html_"):
        bundled["text/html"] = html.page(html.paragraph(_heading(self)), html.block(shown))
    return bundled


def _heading(tensor: Tensor) -> str:
    """Return what is known of a tensor without its values."""
    lengths = " × ".join(map(str, tensor.shape))
    if is_batched(tensor):
        return f"{tensor.dtype.name} tensor, {lengths or 'one element'}, mapped over by vmap"
    parts = [
        f"{tensor.dtype.name} tensor",
        f"{lengths} = {tensor.numel():,} elements" if tensor.ndim > 1 else _count(tensor.numel()),
        size_text(tensor.numel() * tensor.element_size()),
    ]
    if tensor.requires_grad:
        parts.append("requires a gradient")
    return ", ".join(parts)


def _count(elements: int) -> str:
    return "one element" if elements == 1 else f"{elements:,} elements"


extend_tensor(_repr_mimebundle_=_bundle)
