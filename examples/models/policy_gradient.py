"""REINFORCE (Williams, 1992) on the cart-pole of Barto, Sutton and Anderson (1983).

A cart on a rail balances a pole by being pushed left or right. Several carts run at once, so that
the policy sees a batch of them. Actions that led to larger rewards than average become more likely.

python examples/models/policy_gradient.py
GT_CONFIG=examples/models/data_parallel.yaml python examples/models/policy_gradient.py --workers 4
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import gt
import numpy as np
from gt import nn


class CartPole:
    """A batch of carts with poles; a state is position, velocity, angle and angular velocity.

    Args:
        count: the number of carts.
        rng: NumPy generator for the initial states.
    """

    gravity, cart, pole, half_length, force, seconds = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02

    def __init__(self, count: int, rng: np.random.Generator):
        self.states = rng.uniform(-0.05, 0.05, (count, 4))

    def step(self, actions: np.ndarray) -> np.ndarray:
        """Push right where actions (count,) are true; return which poles still stand."""
        _, speed, angle, turn = self.states.T
        sine, cosine, total = np.sin(angle), np.cos(angle), self.cart + self.pole
        force = np.where(actions, self.force, -self.force)
        push = (force + self.pole * self.half_length * turn**2 * sine) / total
        inertia = self.half_length * (4 / 3 - self.pole * cosine**2 / total)
        bend = (self.gravity * sine - cosine * push) / inertia
        pull = push - self.pole * self.half_length * bend * cosine / total
        change = np.stack([speed, pull, turn, bend], axis=1)
        self.states = self.states + self.seconds * change
        near, upright = abs(self.states[:, 0]) < 2.4, abs(self.states[:, 2]) < np.radians(12)
        return np.asarray(near & upright)


class Policy(nn.Module):
    """A network that scores the two actions."""

    def __init__(self, hidden: int = 32):
        super().__init__()
        with gt.signal.context("cut_outputs"):
            self.hidden = nn.Linear(4, hidden)
        with gt.signal.context("cut_inputs"):
            self.output = nn.Linear(hidden, 2)

    def forward(self, states: gt.Tensor) -> gt.Tensor:
        """Return scores (batch, 2) for states (batch, 4)."""
        return self.output(self.hidden(states).tanh())


@dataclass
class Episodes:
    """Recorded episodes: arrays of (time, carts), and states of (time, carts, 4)."""

    states: np.ndarray
    actions: np.ndarray
    alive: np.ndarray

    def lengths(self) -> np.ndarray:
        """Return the number of steps that each pole stood."""
        return np.asarray(self.alive.sum(0))

    def advantages(self, discount: float = 0.99) -> np.ndarray:
        """Return the normalized discounted return after each time: (time, carts)."""
        returns, later = np.zeros(self.alive.shape), 0
        for time in reversed(range(len(returns))):
            later = self.alive[time] * (1 + discount * later)
            returns[time] = later
        counted = returns[self.alive]
        scaled = (returns - counted.mean()) / (counted.std() + 1e-8)
        return np.asarray(scaled * self.alive, "float32")


def play(
    probabilities: Callable[[np.ndarray], np.ndarray],
    rng: np.random.Generator,
    carts: int,
    times: int,
) -> Episodes:
    """Return episodes; probabilities(states) is the probability of pushing right, as arrays."""
    environment = CartPole(carts, rng)
    alive = np.ones(carts, bool)
    history: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for _ in range(times):
        states = environment.states.astype("float32")
        actions = rng.random(carts) < probabilities(states)
        history.append((states, actions.astype("int64"), alive))
        alive = alive & environment.step(actions)
        if not alive.any():
            break
    return Episodes(*(np.stack(column) for column in zip(*history, strict=True)))


def policy_loss(model: Policy, episodes: Episodes) -> gt.Tensor:
    """Return the loss whose gradient is minus the policy gradient of the expected return."""
    with gt.signal.context("batch"):
        states = gt.from_numpy(episodes.states.reshape(-1, 4))
        actions = gt.from_numpy(episodes.actions.reshape(-1))
        advantages = gt.from_numpy(episodes.advantages().reshape(-1))
        surprise = nn.functional.cross_entropy(model(states), actions, reduction="none")
        return (surprise * advantages).sum() / float(episodes.alive.sum())


def probabilities_of(model: Policy) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function `probabilities` for `play`."""

    def probabilities(states: np.ndarray) -> np.ndarray:
        with gt.no_grad():
            return model(gt.from_numpy(states)).softmax(-1)[:, 1].numpy()

    return probabilities


def train(
    model: Policy,
    optimizer: gt.optim.Optimizer,
    rng: np.random.Generator,
    iterations: int,
    carts: int = 16,
    times: int = 200,
) -> list[float]:
    """Alternate playing and learning; return the mean length of each iteration's episodes."""
    lengths: list[float] = []
    for iteration in range(iterations):
        episodes = play(probabilities_of(model), rng, carts, times)
        loss = policy_loss(model, episodes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        lengths.append(float(episodes.lengths().mean()))
        if (iteration + 1) % 10 == 0:
            print(f"iteration {iteration + 1}: poles stand for {np.mean(lengths[-10:]):.0f} steps")
    return lengths


def main(iterations: int = 60, times: int = 200, workers: int = 1) -> list[float]:
    """Train; return the mean length of each iteration's episodes."""
    if workers > 1:
        gt.gpu_workers(workers)
    gt.manual_seed(0)
    rng = np.random.default_rng(0)
    with gt.signal.context("copied"):
        model = Policy()
    optimizer = gt.optim.Adam(model.parameters(), lr=0.02)
    lengths = train(model, optimizer, rng, iterations, times=times)
    test = play(probabilities_of(model), rng, 64, times).lengths()
    print(f"test: {test.mean():.0f} of {times} steps, {(test == times).mean():.0%} to the end")
    return lengths


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Learn to balance a pole.")
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--times", type=int, default=200, help="most steps in an episode")
    parser.add_argument("--workers", type=int, default=1, help="workers in this process")
    main(**vars(parser.parse_args()))
