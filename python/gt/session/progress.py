"""`gt.progress`: a progress bar that does not make its loop wait for results."""

import time
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from gt._arguments import brief
from gt._gt import Tensor

Item = TypeVar("Item")


class progress(Generic[Item]):
    """A progress bar of a loop, with values from it, in a terminal or a notebook.

        bar = gt.progress(range(1000))
        for step in bar:
            loss = train(step)
            bar.show(loss=loss)

    Needs the package tqdm; `options` are tqdm's own (`desc`, `total`, `disable`, ...).

    Args:
        items: what the loop iterates over.
        every: seconds between updates of the values. The loop waits for the values only then;
            between updates it runs ahead of the workers.

    Raises:
        ImportError: tqdm is not installed.
        TypeError: `items` cannot be iterated over, or tqdm has no such option.
    """

    def __init__(self, items: Iterable[Item], *, every: float = 0.5, **options: Any):
        try:
            from tqdm.auto import tqdm
        except ImportError as error:
            raise ImportError(
                "gt.progress needs the package tqdm\n  hint: pip install tqdm"
            ) from error
        given: Any = items
        if not hasattr(given, "__iter__") and not hasattr(given, "__getitem__"):
            hint = f"\n  hint: range({given})" if isinstance(given, int) else ""
            raise TypeError(
                f"progress: items is {brief(given)}, expected what a loop iterates over{hint}"
            )
        self._items = items
        try:
            self._bar = tqdm(items, **options)
        except KeyError as error:
            raise TypeError(f"progress: tqdm has no such option: {error.args[0]}") from None
        self._every = every
        self._values: dict[str, Any] = {}
        self._looked = time.monotonic()

    def __iter__(self) -> Iterator[Item]:
        try:
            for item in self._items:
                yield item
                self._bar.update()
            # The final values, while the bar can still change. A loop that is left early does not
            # wait for them.
            self._look()
        finally:
            self._bar.close()

    def __len__(self) -> int:
        return len(self._bar)

    def show(self, **values: Any) -> None:
        """Show values beside the bar: numbers, texts, and tensors of one element."""
        for name, value in values.items():
            self._values[name] = value.detach() if isinstance(value, Tensor) else value
        if time.monotonic() >= self._looked + self._every:
            self._look()

    def _look(self) -> None:
        if self._values and not self._bar.disable:
            told = {
                name: value.item() if isinstance(value, Tensor) else value
                for name, value in self._values.items()
            }
            self._bar.set_postfix(told)
        self._looked = time.monotonic()
