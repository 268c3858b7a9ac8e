"""REINFORCE (Williams, 1992) on the cart-pole of Barto, Sutton and Anderson (1983).

A cart on a rail balances a pole by being pushed left or right. Several carts run at once, so that
the policy sees a batch of them. What made later rewards larger than usual becomes more likely.

python examples/models/policy_gradient.py
GT_CONFIG=examples/models/data_parallel.yaml python examples/models/policy_gradient.py --workers 4
"""

import argparse
from dataclasses import dataclass

import gt
import numpy as np
from gt import nn


class CartPole:
    """Carts whose poles fall; a state is position, velocity, angle and angular velocity.

    Args:
        count: how many carts.
        rng: NumPy's generator, for where they begin.
    """

    gravity, cart, pole, half_length, force, seconds = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02

    def __init__(self, count, rng):
        self.states = rng.uniform(-0.05, 0.05, (count, 4))

    def step(self, actions):
        """Push right where actions (count,) are true; say whose pole still stands."""
        x, speed, angle, turn = self.states.T
        sine, cosine, total = np.sin(angle), np.cos(angle), self.cart + self.pole
        force = np.where(actions, self.force, -self.force)
        push = (force + self.pole * self.half_length * turn**2 * sine) / total
        inertia = self.half_length * (4 / 3 - self.pole * cosine**2 / total)
        bend = (self.gravity * sine - cosine * push) / inertia
        pull = push - self.pole * self.half_length * bend * cosine / total
        change = np.stack([speed, pull, turn, bend], axis=1)
        self.states = self.states + self.seconds * change
        return (abs(self.states[:, 0]) < 2.4) & (abs(self.states[:, 2]) < np.radians(12))


class Policy(nn.Module):
    """Scores of the two actions."""

    def __init__(self, hidden=32):
        super().__init__()
        with gt.signal.context("cut_outputs"):
            self.hidden = nn.Linear(4, hidden)
        with gt.signal.context("cut_inputs"):
            self.output = nn.Linear(hidden, 2)

    def forward(self, states):
        """Give scores (batch, 2) for states (batch, 4)."""
        return self.output(self.hidden(states).tanh())


@dataclass
class Episodes:
    """What happened: arrays of (time, carts), and states of (time, carts, 4)."""

    states: np.ndarray
    actions: np.ndarray
    alive: np.ndarray

    def lengths(self):
        """Give how long each pole stood."""
        return self.alive.sum(0)

    def advantages(self, discount=0.99):
        """Give how much better than usual it went on after each time."""
        returns, later = np.zeros(self.alive.shape), 0
        for time in reversed(range(len(returns))):
            later = self.alive[time] * (1 + discount * later)
            returns[time] = later
        counted = returns[self.alive]
        scaled = (returns - counted.mean()) / (counted.std() + 1e-8)
        return (scaled * self.alive).astype("float32")


def play(probabilities, rng, carts, times):
    """Play by a function from states to the probabilities of pushing right, all as arrays."""
    environment = CartPole(carts, rng)
    alive, history = np.ones(carts, bool), []
    for _ in range(times):
        states = environment.states.astype("float32")
        actions = rng.random(carts) < probabilities(states)
        history.append((states, actions.astype("int64"), alive))
        alive = alive & environment.step(actions)
        if not alive.any():
            break
    return Episodes(*(np.stack(column) for column in zip(*history, strict=True)))


def policy_loss(model, episodes):
    """Give the loss whose gradient is that of the expected return, with the sign changed."""
    with gt.signal.context("batch"):
        states = gt.from_numpy(episodes.states.reshape(-1, 4))
        actions = gt.from_numpy(episodes.actions.reshape(-1))
        advantages = gt.from_numpy(episodes.advantages().reshape(-1))
        surprise = nn.functional.cross_entropy(model(states), actions, reduction="none")
        return (surprise * advantages).sum() / float(episodes.alive.sum())


def probabilities_of(model):
    """Give the function that `play` asks for."""

    def probabilities(states):
        with gt.no_grad():
            return model(gt.from_numpy(states)).softmax(-1)[:, 1].numpy()

    return probabilities


def train(model, optimizer, rng, iterations, carts=16, times=200):
    """Play and learn in turn; give how long the poles stood in the mean, each time."""
    lengths = []
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


def main(iterations=60, times=200, workers=1):
    """Train; give how long poles stand in the mean after each iteration."""
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
    parser.add_argument("--times", type=int, default=200, help="steps after which a game ends")
    parser.add_argument("--workers", type=int, default=1, help="how many, in this process")
    main(**vars(parser.parse_args()))
