"""The program that the demo runs twice: training a small network on handwritten digits."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import gt
from gt import nn
from gt.demo.data import load_digits


class Result(NamedTuple):
    """The result of training: the accuracy on the test set, and the mean loss of each epoch."""

    accuracy: float
    losses: list[float]


def train(epochs: int, report: Callable[[int, float], None]) -> Result:
    """Train in the session of this thread, and return the result.

    Args:
        epochs: the number of passes over the training set.
        report: called after each epoch with its number, from 1, and its mean loss.
    """
    train_images, train_labels, test_images, test_labels = load_digits()
    images, labels = gt.from_numpy(train_images), gt.from_numpy(train_labels)
    shuffle = np.random.default_rng(1)

    gt.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = gt.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    means = []
    for epoch in range(1, epochs + 1):
        losses = []
        order = shuffle.permutation(len(train_images))
        for start in range(0, len(order), 64):
            batch = order[start : start + 64]
            loss = nn.cross_entropy_loss(model(images[batch]), labels[batch])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.detach())  # Not fetched: the loop runs ahead of the worker.
        means.append(gt.stack(losses).mean().item())  # Waits for the epoch.
        report(epoch, means[-1])

    with gt.no_grad():
        predicted = model(gt.from_numpy(test_images)).argmax(1)
        accuracy = (predicted == gt.from_numpy(test_labels)).float().mean().item()
    return Result(accuracy, means)
