"""An exponential moving average of the weights is steadier than the weights themselves.

python examples/ema.py

With a high learning rate and small batches, the accuracy jumps from one epoch to the next. That of
the model with averaged weights, over about the last hundred steps, does not.
"""

import argparse

import gt
from gt import nn
from gt.demo import load_digits
from gt.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


def accuracy(model: nn.Module, images: gt.Tensor, labels: gt.Tensor) -> float:
    """Return the fraction of images that are recognized."""
    with gt.no_grad():
        return float((model(images).argmax(1) == labels).float().mean())


def spread(values: list[float]) -> float:
    """Return the mean absolute difference between consecutive values."""
    steps = [abs(b - a) for a, b in zip(values, values[1:], strict=False)]
    return sum(steps) / max(len(steps), 1)


def main(argv: list[str] | None = None) -> dict[str, list[float]]:
    """Train; return the accuracies of the weights and of their averages after each epoch."""
    parser = argparse.ArgumentParser(description="Average the weights of a network.")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--decay", type=float, default=0.98)
    args = parser.parse_args(argv)
    gt.manual_seed(0)
    images, labels, test_images, test_labels = map(gt.from_numpy, load_digits())

    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(args.decay))
    optimizer = gt.optim.SGD(model.parameters(), lr=1.0)
    curves: dict[str, list[float]] = {"weights": [], "averages": []}
    print("epoch   weights   averages")
    for epoch in range(args.epochs):
        for rows in gt.randperm(len(labels)).split(16)[: len(labels) // 16]:
            loss = nn.functional.cross_entropy(model(images[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            averaged.update_parameters(model)
        curves["weights"].append(accuracy(model, test_images, test_labels))
        curves["averages"].append(accuracy(averaged, test_images, test_labels))
        print(f"{epoch:5} {curves['weights'][-1]:9.1%} {curves['averages'][-1]:10.1%}")
    jumps = {name: spread(curve[2:]) for name, curve in curves.items()}
    print(f"from one epoch to the next: {jumps['weights']:.2%}, and {jumps['averages']:.2%}")
    return curves


if __name__ == "__main__":
    main()
