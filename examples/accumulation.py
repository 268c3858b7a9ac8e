"""Gradient accumulation: train with the gradients of a large batch in the memory of a small one.

python examples/accumulation.py

Two copies of a model see the same 128 images per step: one at once, the other 32 at a time. Each
loss is a mean, so it is weighted by its share of the large batch; `backward()` adds to `grad`.
"""

import argparse

import gt
from gt import nn
from gt.demo import load_digits

BATCH, MICRO = 128, 32


def loss_of(model: nn.Sequential, images: gt.Tensor, labels: gt.Tensor) -> gt.Tensor:
    """Return the mean loss over images."""
    return nn.functional.cross_entropy(model(images), labels)


def accumulate(model: nn.Sequential, images: gt.Tensor, labels: gt.Tensor, size: int) -> gt.Tensor:
    """Add up the gradients of batches of `size` images; return the loss over all images."""
    total = gt.zeros(())
    for start in range(0, len(labels), size):
        part = slice(start, start + size)
        # The last part may be smaller.
        share = len(labels[part]) / len(labels)
        loss = loss_of(model, images[part], labels[part]) * share
        loss.backward()
        total = total + loss.detach()
    return total


def largest_difference(first: nn.Module, second: nn.Module) -> float:
    """Return the largest difference between the parameters of two models."""
    pairs = zip(first.parameters(), second.parameters(), strict=True)
    return max((a - b).abs().max().item() for a, b in pairs)


def main(argv: list[str] | None = None) -> list[float]:
    """Train both models; return the largest difference of their weights after each epoch."""
    parser = argparse.ArgumentParser(description="Accumulate gradients.")
    parser.add_argument("--epochs", type=int, default=5)
    epochs = parser.parse_args(argv).epochs
    gt.manual_seed(0)
    images, labels, _, _ = map(gt.from_numpy, load_digits())

    whole, parts = (nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)) for _ in "ab")
    parts.load_state_dict(whole.state_dict())
    ways = [
        (model, gt.optim.SGD(model.parameters(), lr=0.5), size)
        for model, size in [(whole, BATCH), (parts, MICRO)]
    ]
    print("epoch   loss at once   loss in parts   largest difference of weights")
    differences: list[float] = []
    for epoch in range(epochs):
        losses: list[gt.Tensor] = []
        for rows in gt.randperm(len(labels)).split(BATCH):
            losses.clear()
            for model, optimizer, size in ways:
                optimizer.zero_grad()
                losses.append(accumulate(model, images[rows], labels[rows], size))
                optimizer.step()
        differences.append(largest_difference(whole, parts))
        once, in_parts = (loss.item() for loss in losses)
        print(f"{epoch:5} {once:14.7f} {in_parts:15.7f} {differences[-1]:31.1e}")
    return differences


if __name__ == "__main__":
    main()
