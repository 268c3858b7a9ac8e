"""A character-level language model on an LSTM (Hochreiter and Schmidhuber, 1997).

It trains on Python's own source code, and writes some. Long texts are read in short windows: the
states carry over from one window to the next, gradients do not (truncated backpropagation through
time).

python examples/models/lstm.py --text FILE
GT_CONFIG=examples/models/data_parallel.yaml python examples/models/lstm.py --workers 4
"""

import argparse
import inspect
import math
import textwrap
from collections.abc import Iterator
from pathlib import Path

import gt
import numpy as np
from gt import nn

#: The hidden and the cell states of all layers.
States = tuple[gt.Tensor, gt.Tensor]


class LanguageModel(nn.Module):
    """An embedding, an LSTM, and a linear layer that scores the next character.

    Args:
        vocabulary: the number of different characters.
        width: the width of an embedded character.
        hidden: the width of the states.
        layers: the number of layers of the LSTM.
        dropout: the probability that a value between layers is dropped.
    """

    def __init__(
        self,
        vocabulary: int,
        width: int = 32,
        hidden: int = 128,
        layers: int = 1,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, hidden, layers, dropout=dropout, batch_first=True)
        with gt.signal.context("cut_outputs"):
            self.decoder = nn.Linear(hidden, vocabulary)

    def forward(
        self, characters: gt.Tensor, states: States | None = None
    ) -> tuple[gt.Tensor, States]:
        """Return scores (batch, length, vocabulary) for characters (batch, length), and states."""
        outputs, after = self.lstm(self.embedding(characters), states)
        return self.decoder(outputs), after


class Text:
    """A text encoded as numbers, and the character of each number."""

    def __init__(self, text: str):
        self.characters = sorted(set(text))
        self.numbers = {character: number for number, character in enumerate(self.characters)}
        self.data = self.encode(text)

    def encode(self, text: str) -> np.ndarray:
        """Return the numbers of a text's characters, as an array."""
        return np.array([self.numbers[character] for character in text])

    def decode(self, numbers: list[int]) -> str:
        """Return the text of an array of numbers."""
        return "".join(self.characters[number] for number in numbers)


def windows(
    data: np.ndarray, batch_size: int, length: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield inputs and targets (batch_size, length); each row continues in the next pair."""
    columns = (len(data) - 1) // batch_size
    inputs = data[: batch_size * columns].reshape(batch_size, columns)
    targets = data[1 : batch_size * columns + 1].reshape(batch_size, columns)
    for start in range(0, columns - length + 1, length):
        yield inputs[:, start : start + length], targets[:, start : start + length]


def negative_log_likelihood(
    model: LanguageModel, inputs: np.ndarray, targets: np.ndarray, states: States | None = None
) -> tuple[gt.Tensor, States]:
    """Return the mean over all characters, in nats, and the final states."""
    with gt.signal.context("batch"):
        scores, after = model(gt.from_numpy(inputs), states)
        return nn.functional.cross_entropy(
            scores.flatten(0, 1), gt.from_numpy(targets.ravel())
        ), after


def train(
    model: LanguageModel,
    optimizer: gt.optim.Optimizer,
    data: np.ndarray,
    steps: int,
    batch_size: int = 32,
    length: int = 32,
) -> list[float]:
    """Train on the windows of a text, repeatedly; return the loss of each step, in nats."""
    losses: list[gt.Tensor] = []
    while len(losses) < steps:
        states: States | None = None
        for inputs, targets in windows(data, batch_size, length):
            loss, states = negative_log_likelihood(model, inputs, targets, states)
            states = (states[0].detach(), states[1].detach())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.detach())
            if len(losses) % 50 == 0:
                bits = gt.stack(losses[-50:]).mean().item() / math.log(2)
                print(f"step {len(losses)}: {bits:.2f} bits per character")
            if len(losses) == steps:
                break
    return gt.stack(losses).tolist()


def evaluate(
    model: LanguageModel, data: np.ndarray, batch_size: int = 8, length: int = 64
) -> float:
    """Return the bits per character of a held-out text."""
    losses: list[gt.Tensor] = []
    states: States | None = None
    with gt.no_grad():
        for inputs, targets in windows(data, batch_size, length):
            loss, states = negative_log_likelihood(model, inputs, targets, states)
            losses.append(loss)
    return gt.stack(losses).mean().item() / math.log(2)


def write(
    model: LanguageModel, text: Text, beginning: str, length: int, temperature: float = 0.7
) -> str:
    """Return a beginning with the model's continuation."""
    with gt.no_grad():
        scores, states = model(gt.from_numpy(text.encode(beginning))[None])
        written: list[gt.Tensor] = []
        for _ in range(length):
            probabilities = (scores[:, -1] / temperature).softmax(-1)
            character = gt.multinomial(probabilities, 1)
            written.append(character)
            scores, states = model(character, states)
    return beginning + text.decode(gt.cat(written, dim=1)[0].tolist())


def main(steps: int = 400, hidden: int = 128, file: str | None = None, workers: int = 1) -> float:
    """Train; return the bits per character of a held-out part of the text."""
    if workers > 1:
        gt.gpu_workers(workers)
    gt.manual_seed(0)
    text = Text(Path(file).read_text() if file else inspect.getsource(argparse))
    train_data, test_data = np.split(text.data, [len(text.data) * 9 // 10])
    with gt.signal.context("copied"):
        model = LanguageModel(len(text.characters), hidden=hidden)
    count = sum(parameter.numel() for parameter in model.parameters())
    print(f"LSTM: {count:,} parameters, {len(text.characters)} different characters")

    optimizer = gt.optim.Adam(model.parameters(), lr=5e-3)
    train(model, optimizer, train_data, steps)
    bits = evaluate(model, test_data)
    print(f"test: {bits:.2f} bits per character, {math.log2(len(text.characters)):.2f} by chance")
    print(textwrap.indent(write(model, text, "    def ", 200), "  | ", lambda line: True))
    return bits


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train a language model of characters.")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--hidden", type=int, default=128, help="the width of the LSTM's states")
    parser.add_argument("--text", dest="file", help="file to train on, instead of Python's code")
    parser.add_argument("--workers", type=int, default=1, help="workers in this process")
    main(**vars(parser.parse_args()))
