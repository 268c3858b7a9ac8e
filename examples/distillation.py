"""Distillation (Hinton et al., 2015): a small network learns from the predictions of a large one.

python examples/distillation.py

Only 60 images have labels. The teacher, which was trained with all labels, predicts for every image
how likely each digit is. A student that learns from these predictions recognizes more images than
one that learns from the 60 labels.
"""

import argparse
from collections.abc import Callable

import gt
from gt import nn
from gt.demo import load_digits
from gt.nn import functional as F

LABELLED = 60

#: The loss of scores, by the indices of the batch's images.
Loss = Callable[[gt.Tensor, gt.Tensor], gt.Tensor]


def make_model(width: int) -> nn.Sequential:
    """Return a network with one hidden layer."""
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))


def distillation_loss(student: gt.Tensor, teacher: gt.Tensor, temperature: float) -> gt.Tensor:
    """Return the divergence of the student's predictions from the teacher's, both softened.

    Args:
        student: scores (images, digits).
        teacher: scores (images, digits), which are detached.
        temperature: the divisor of the scores; its square compensates for smaller gradients.
    """
    ours = F.log_softmax(student / temperature, -1)
    theirs = F.softmax(teacher.detach() / temperature, -1)
    return F.kl_div(ours, theirs, reduction="batchmean") * temperature**2


def train(model: nn.Sequential, images: gt.Tensor, loss_of: Loss, epochs: int) -> None:
    """Train with loss_of(scores, rows), where rows are the indices of the batch's images."""
    optimizer = gt.optim.AdamW(model.parameters(), lr=5e-3)
    size = min(64, len(images))
    for _ in range(epochs):
        for rows in gt.randperm(len(images)).split(size)[: len(images) // size]:
            loss = loss_of(model(images[rows]), rows)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def accuracy(model: nn.Sequential, images: gt.Tensor, labels: gt.Tensor) -> float:
    """Return the fraction of images that are recognized."""
    with gt.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


def main(argv: list[str] | None = None) -> dict[str, float]:
    """Train a teacher and two students; return their accuracies."""
    parser = argparse.ArgumentParser(description="Distil a network.")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--temperature", type=float, default=4.0)
    args = parser.parse_args(argv)
    gt.manual_seed(0)
    images, labels, test_images, test_labels = map(gt.from_numpy, load_digits())

    def by_label(scores: gt.Tensor, rows: gt.Tensor) -> gt.Tensor:
        return F.cross_entropy(scores, labels[rows])

    teacher = make_model(256)
    train(teacher, images, by_label, args.epochs)
    with gt.no_grad():
        opinions = teacher(images)

    def by_opinion(scores: gt.Tensor, rows: gt.Tensor) -> gt.Tensor:
        return distillation_loss(scores, opinions[rows], args.temperature)

    alone, distilled = make_model(16), make_model(16)
    distilled.load_state_dict(alone.state_dict())
    # As many steps as the other student, repeating the few images.
    train(alone, images[:LABELLED], by_label, args.epochs * len(images) // 64)
    train(distilled, images, by_opinion, args.epochs)

    found: dict[str, float] = {}
    for name, model in [("teacher", teacher), ("alone", alone), ("distilled", distilled)]:
        count = sum(p.numel() for p in model.parameters())
        found[name] = accuracy(model, test_images, test_labels)
        print(f"{name:10} {count:7,} numbers   test accuracy {found[name]:.1%}")
    return found


if __name__ == "__main__":
    main()
