"""LoRA (Hu et al., 2021): a small transformer learns new digits with few trained parameters.

python examples/lora.py

The transformer reads an image row by row. It is trained on the digits 0 to 4; then its weights are
frozen, and a product of two narrow matrices beside each linear layer is trained on 5 to 9. In the
end these products are merged into the weights.
"""

import argparse
from collections.abc import Callable
from typing import TypeVar

import gt
import numpy as np
from gt import nn
from gt.demo import load_digits

Child = TypeVar("Child", bound=nn.Module)


class Reader(nn.Module):
    """A transformer over the rows of an image: eight rows of eight pixels in, ten scores out."""

    def __init__(self, width: int = 32):
        super().__init__()
        self.embed = nn.Linear(8, width)
        self.places = nn.Parameter(gt.randn(8, width) * 0.1)
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 10)

    def forward(self, pixels: gt.Tensor) -> gt.Tensor:
        """Return a score for each digit."""
        rows = self.embed(pixels.reshape(-1, 8, 8)) + self.places
        return self.head(self.encoder(rows).mean(1))


class LoRALinear(nn.Module):
    """A frozen linear layer, plus a trained product of two narrow matrices."""

    def __init__(self, base: nn.Linear, rank: int = 4, alpha: float = 8.0):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(gt.randn(rank, base.in_features) / base.in_features**0.5)
        self.up = nn.Parameter(gt.zeros(base.out_features, rank))
        self.scale = alpha / rank

    def forward(self, x: gt.Tensor) -> gt.Tensor:
        """Return the layer's output plus the adapter's, which is 0 at first."""
        return self.base(x) + (x @ self.down.T @ self.up.T) * self.scale

    def merged(self) -> nn.Linear:
        """Merge the adapter into the linear layer, and return that layer."""
        with gt.no_grad():
            self.base.weight += self.up @ self.down * self.scale
        return self.base


def replace(model: nn.Module, kind: type[Child], make: Callable[[Child], nn.Module]) -> None:
    """Replace each child module of exactly this kind by make(child)."""
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if type(child) is kind:
                setattr(module, name, make(child))


def train(model: Reader, images: np.ndarray, labels: np.ndarray, epochs: int, rate: float) -> int:
    """Train the parameters that are not frozen; return their number."""
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = gt.optim.AdamW(trained, lr=rate)
    inputs, targets = gt.from_numpy(images), gt.from_numpy(labels)
    for _ in range(epochs):
        for rows in gt.randperm(len(labels)).split(64)[: len(labels) // 64]:
            loss = nn.functional.cross_entropy(model(inputs[rows]), targets[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return sum(p.numel() for p in trained)


def accuracy(model: Reader, images: np.ndarray, labels: np.ndarray) -> float:
    """Return the fraction of images that are recognized."""
    with gt.no_grad():
        return (
            (model(gt.from_numpy(images)).argmax(1) == gt.from_numpy(labels)).float().mean().item()
        )


def main(argv: list[str] | None = None) -> tuple[float, float]:
    """Train, adapt and merge; return the accuracy on the new digits before and after."""
    parser = argparse.ArgumentParser(description="Adapt a transformer by LoRA.")
    parser.add_argument("--epochs", type=int, default=10)
    epochs = parser.parse_args(argv).epochs
    gt.manual_seed(0)
    images, labels, test_images, test_labels = load_digits()
    old, new, test = labels < 5, labels >= 5, test_labels >= 5

    model = Reader()
    count = train(model, images[old], labels[old], epochs, 3e-3)
    before = accuracy(model, test_images[test], test_labels[test])
    print(f"digits 0 to 4, {count:,} numbers trained; accuracy on 5 to 9: {before:.1%}")

    model.requires_grad_(False)
    replace(model, nn.Linear, LoRALinear)
    count = train(model, images[new], labels[new], epochs, 1e-2)
    after = accuracy(model, test_images[test], test_labels[test])
    print(f"digits 5 to 9, {count:,} numbers trained; accuracy on 5 to 9: {after:.1%}")

    adapted = model(gt.from_numpy(test_images))
    replace(model, LoRALinear, LoRALinear.merged)
    difference = (model(gt.from_numpy(test_images)) - adapted).abs().max().item()
    print(f"merged into the weights: scores differ by {difference:.1e} at most")
    return before, after


if __name__ == "__main__":
    main()
