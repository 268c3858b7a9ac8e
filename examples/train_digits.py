"""Train a small network on real handwritten digits, which GT includes.

python examples/train_digits.py                            # in this process
python examples/train_digits.py --connect localhost:12345  # on a server's workers
python examples/train_digits.py --log runs/digits          # for TensorBoard, by tensorboardX
"""

import argparse
import json
from typing import Any

import gt
import numpy as np
from gt import nn
from gt.demo import load_digits
from tqdm import tqdm


class Network(nn.Module):
    """64 pixels in, 128 hidden units, 10 digits out."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(64, 128)
        self.output = nn.Linear(128, 10)

    def forward(self, pixels: gt.Tensor) -> gt.Tensor:
        """Return a score for each digit."""
        return self.output(self.hidden(pixels).relu())


def main(argv: list[str] | None = None) -> tuple[float, list[float]]:
    """Train; return the test accuracy and the loss of each epoch."""
    parser = argparse.ArgumentParser(description="Train on handwritten digits.")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--connect", metavar="HOST:PORT", help="use this server")
    parser.add_argument("--curve", metavar="FILE", help="save the loss curve as JSON")
    parser.add_argument("--log", metavar="FOLDER", help="write losses and weights for TensorBoard")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    args = parser.parse_args(argv)
    if args.connect:
        gt.connect(args.connect)
    gt.manual_seed(0)
    writer: Any = None
    if args.log:
        from gt.utils.tensorboard import SummaryWriter  # needs a package that GT does not

        writer = SummaryWriter(args.log)

    train_images, train_labels, test_images, test_labels = load_digits()
    images, labels = gt.from_numpy(train_images), gt.from_numpy(train_labels)
    model = Network()
    optimizer = gt.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    shuffle = np.random.default_rng(1)

    curve: list[float] = []
    bar: Any = tqdm(range(args.epochs), desc="training", disable=args.quiet)
    for epoch in bar:
        losses: list[gt.Tensor] = []
        order = shuffle.permutation(len(train_images))
        for start in range(0, len(order), 64):
            batch = order[start : start + 64]
            loss = nn.cross_entropy_loss(model(images[batch]), labels[batch])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            # Not fetched here: the loop continues while the workers compute.
            losses.append(loss.detach())
        curve.append(gt.stack(losses).mean().item())
        bar.set_postfix(loss=f"{curve[-1]:.4f}")
        if writer:
            writer.add_scalar("loss", curve[-1], epoch)
            writer.add_histogram("hidden", model.hidden.weight, epoch)

    with gt.no_grad():
        guesses = model(gt.from_numpy(test_images)).argmax(1)
        accuracy = (guesses == gt.from_numpy(test_labels)).float().mean().item()
    if writer:
        writer.close()
    print(f"test accuracy: {accuracy:.1%}")
    if args.curve:
        with open(args.curve, "w") as file:
            json.dump({"accuracy": accuracy, "loss": curve}, file)
    return accuracy, curve


if __name__ == "__main__":
    main()
