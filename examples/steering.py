"""Activation steering: a hook adds a direction to a layer's activations, which steers predictions.

python examples/steering.py

The direction from 3s to 8s is the difference between a layer's mean activations for them. Added to
the activations of every image with growing strength, it turns predictions into 8s. The weights are
unchanged, and without the hook the predictions are as before.
"""

import argparse

import gt
from gt import nn
from gt.demo import load_digits
from gt.nn.hooks import RemovableHandle


class Block(nn.Module):
    """A residual block."""

    def __init__(self, width: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner, self.outer = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: gt.Tensor) -> gt.Tensor:
        """Return x plus the output of two linear layers."""
        return x + self.outer(self.inner(self.norm(x)).relu())


def make_model(width: int = 32) -> nn.Sequential:
    """Return a network of residual blocks, which are its layers 1 to 3."""
    blocks = [Block(width) for _ in range(3)]
    return nn.Sequential(nn.Linear(64, width), *blocks, nn.Linear(width, 10))


def train(model: nn.Sequential, images: gt.Tensor, labels: gt.Tensor, epochs: int) -> None:
    """Train on digits."""
    optimizer = gt.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(epochs):
        for rows in gt.randperm(len(labels)).split(64)[: len(labels) // 64]:
            loss = nn.functional.cross_entropy(model(images[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def activations(model: nn.Sequential, layer: nn.Module, images: gt.Tensor) -> gt.Tensor:
    """Return the output of a layer for images."""
    kept: list[gt.Tensor] = []
    handle = layer.register_forward_hook(lambda module, given, output: kept.append(output))
    with gt.no_grad():
        model(images)
    handle.remove()
    return kept[0]


def direction_between(
    model: nn.Sequential,
    layer: nn.Module,
    images: gt.Tensor,
    labels: gt.Tensor,
    source: int,
    goal: int,
) -> gt.Tensor:
    """Return the mean activations of digit `goal` minus those of digit `source`."""
    found = activations(model, layer, images)
    return found[labels == goal].mean(0) - found[labels == source].mean(0)


def steer(layer: nn.Module, direction: gt.Tensor) -> RemovableHandle:
    """Add a direction to a layer's output until the returned handle is removed."""
    return layer.register_forward_hook(lambda module, given, output: output + direction)


def main(argv: list[str] | None = None) -> list[float]:
    """Train and steer; return the fraction of 3s that are called 8s at each strength."""
    parser = argparse.ArgumentParser(description="Steer the activations of a network.")
    parser.add_argument("--epochs", type=int, default=10)
    epochs = parser.parse_args(argv).epochs
    gt.manual_seed(0)
    images, labels, test_images, test_labels = map(gt.from_numpy, load_digits())
    model = make_model()
    train(model, images, labels, epochs)
    threes = test_images[test_labels == 3]
    before = model(threes)

    layer = model[2]
    direction = direction_between(model, layer, images, labels, 3, 8)
    print("strength   called 3   called 8   score of 8 - score of 3")
    shares: list[float] = []
    for strength in (0.0, 0.5, 1.0, 1.5, 2.0):
        handle = steer(layer, strength * direction)
        with gt.no_grad():
            scores = model(threes)
        handle.remove()
        called = scores.argmax(1)
        three, eight = ((called == digit).float().mean().item() for digit in (3, 8))
        gap = (scores[:, 8] - scores[:, 3]).mean().item()
        print(f"{strength:8.1f} {three:10.1%} {eight:10.1%} {gap:+25.2f}")
        shares.append(eight)
    same = (model(threes) == before).all().item()
    print(f"without the hook, all scores are as before: {same}")
    return shares


if __name__ == "__main__":
    main()
