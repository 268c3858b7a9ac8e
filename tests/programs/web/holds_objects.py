"""Hold tensors in objects of many kinds, some of which notice if their code is run.

Computes until a line is read, and then prints which code of theirs was run.

usage: holds_objects.py [ADDRESS]
"""

import sys
import threading

import gt

if len(sys.argv) > 1:
    gt.connect(sys.argv[1])

noticed: set[str] = set()


class Trainer:
    """An object that refers to tensors in several ways, and to itself."""

    def __init__(self) -> None:
        self.model = gt.nn.Sequential(gt.nn.Linear(3, 2), gt.nn.BatchNorm1d(2))
        self.history = [{"loss": gt.ones(7)}, (gt.zeros(5), "text")]
        self.itself = self

    @property
    def computed(self) -> gt.Tensor:
        """Notice that it is read."""
        noticed.add("property")
        return gt.ones(11)


class Lazy:
    """An object that computes what it stands for at its first use, like those of web frameworks."""

    @property
    def __class__(self):
        noticed.add("__class__")
        return gt.Tensor

    @property
    def __dict__(self):
        noticed.add("__dict__")
        return {}

    def __getattr__(self, name: str):
        noticed.add("__getattr__")
        raise KeyError(name)


class Key(str):
    """A key of a dict whose text is computed."""

    def __repr__(self) -> str:
        noticed.add("__repr__")
        raise ValueError(self)


class Registry(dict):
    """A dict whose entries are computed."""

    def items(self):
        noticed.add("items")
        return super().items()


trainer = Trainer()
trainer.model[0].weight.sum().backward()
lazy = Lazy()
keyed = {Key("a"): gt.ones(13)}
registry = Registry(b=gt.ones(17))
many = list(range(3_000_000))
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.readline(), ended.set()), daemon=True).start()
noticed.clear()


def work() -> None:
    """Compute with a local variable that is changed through `locals()`."""
    kept = locals()
    kept["scale"] = 2.0
    x = gt.ones(4)
    print("at work", flush=True)
    while not ended.wait(0.01):
        (x * 2).sum().item()
    print(kept["scale"], sorted(noticed), flush=True)


work()
