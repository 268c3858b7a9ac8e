"""LSTM, VAE, diffusion and policy gradient compute the same as the same models in PyTorch."""

from collections import OrderedDict

import gt
import numpy as np
import pytest
from twins import (
    assert_close,
    assert_gradients_close,
    assert_same_curve,
    diffusion,
    lstm,
    minimize,
    policy_gradient,
    vae,
)

torch = pytest.importorskip("torch")
functional = torch.nn.functional


@pytest.fixture(autouse=True)
def their_seed():
    torch.manual_seed(0)


class TheirLanguageModel(torch.nn.Module):
    def __init__(self, vocabulary, width, hidden, layers):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, width)
        self.lstm = torch.nn.LSTM(width, hidden, layers, batch_first=True)
        self.decoder = torch.nn.Linear(hidden, vocabulary)

    def forward(self, characters, states=None):
        outputs, states = self.lstm(self.embedding(characters), states)
        return self.decoder(outputs), states


def their_perceptron(inputs, hidden, outputs):
    first, second = torch.nn.Linear(inputs, hidden), torch.nn.Linear(hidden, outputs)
    return torch.nn.Sequential(first, torch.nn.SiLU(), second)


class TheirAutoencoder(torch.nn.Module):
    def __init__(self, pixels, hidden, codes):
        super().__init__()
        self.encoder = their_perceptron(pixels, hidden, 2 * codes)
        self.decoder = their_perceptron(codes, hidden, pixels)

    def forward(self, images, noise):
        mean, log_variance = self.encoder(images).chunk(2, dim=-1)
        posterior = torch.distributions.Normal(mean, (0.5 * log_variance).exp())
        code = posterior.loc + posterior.scale * noise
        decoded = torch.distributions.Bernoulli(logits=self.decoder(code), validate_args=False)
        divergence = torch.distributions.kl_divergence(posterior, torch.distributions.Normal(0, 1))
        return decoded.log_prob(images).sum(-1), divergence.sum(-1)


class TheirBlock(torch.nn.Module):
    def __init__(self, inputs, outputs, width):
        super().__init__()
        self.norm1, self.norm2 = torch.nn.GroupNorm(4, inputs), torch.nn.GroupNorm(4, outputs)
        self.conv1 = torch.nn.Conv2d(inputs, outputs, 3, padding=1)
        self.conv2 = torch.nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time = torch.nn.Linear(width, outputs)
        self.shortcut = torch.nn.Identity()
        if inputs != outputs:
            self.shortcut = torch.nn.Conv2d(inputs, outputs, 1)

    def forward(self, x, time):
        inner = self.conv1(functional.silu(self.norm1(x)))
        inner = inner + self.time(time).unsqueeze(-1).unsqueeze(-1)
        return self.shortcut(x) + self.conv2(functional.silu(self.norm2(inner)))


class TheirUNet(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        wide = 2 * channels
        self.channels = channels
        self.time = their_perceptron(channels, 4 * channels, wide)
        self.first = torch.nn.Conv2d(1, channels, 3, padding=1)
        self.down = TheirBlock(channels, channels, wide)
        self.shrink = torch.nn.Conv2d(channels, wide, 3, stride=2, padding=1)
        self.middle = torch.nn.ModuleList([TheirBlock(wide, wide, wide) for _ in range(2)])
        self.grow = torch.nn.ConvTranspose2d(wide, channels, 4, stride=2, padding=1)
        self.up = TheirBlock(wide, channels, wide)
        self.norm = torch.nn.GroupNorm(4, channels)
        self.last = torch.nn.Conv2d(channels, 1, 3, padding=1)

    def forward(self, images, times):
        half = self.channels // 2
        frequencies = torch.logspace(0, -3, half)
        angles = torch.outer(times.float(), frequencies)
        time = self.time(torch.hstack([angles.sin(), angles.cos()]))
        high = self.down(self.first(images), time)
        low = self.middle[1](self.middle[0](self.shrink(high), time), time)
        joined = torch.cat([self.grow(low), high], 1)
        return self.last(functional.silu(self.norm(self.up(joined, time))))


def their_policy(hidden):
    layers = [torch.nn.Linear(4, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, 2)]
    names = ["hidden", "tanh", "output"]
    return torch.nn.Sequential(OrderedDict(zip(names, layers, strict=True)))


def twins(ours, theirs):
    """Load the weights of the second model into the first; return both."""
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def adams(ours, theirs, lr):
    """Return an Adam optimizer for each."""
    return gt.optim.Adam(ours.parameters(), lr=lr), torch.optim.Adam(theirs.parameters(), lr=lr)


def backward(loss, wanted, ours, theirs):
    """Compare losses and gradients."""
    assert_close(loss, wanted)
    loss.backward()
    wanted.backward()
    assert_gradients_close(ours, theirs)


# The language model.


def language_models(layers=2):
    return twins(lstm.LanguageModel(11, 8, 16, layers), TheirLanguageModel(11, 8, 16, layers))


def their_likelihood(model, inputs, targets, states=None):
    scores, states = model(torch.from_numpy(inputs), states)
    targets = torch.from_numpy(targets).flatten()
    return functional.cross_entropy(scores.reshape(-1, scores.shape[-1]), targets), states


def test_the_language_model():
    ours, theirs = language_models()
    text = np.random.default_rng(0).integers(11, size=4 * 24 + 1)
    states = wanted_states = None
    for inputs, targets in lstm.windows(text, batch_size=4, length=12):
        loss, states = lstm.negative_log_likelihood(ours, inputs, targets, states)
        wanted, wanted_states = their_likelihood(theirs, inputs, targets, wanted_states)
    for state, wanted_state in zip(states, wanted_states, strict=True):
        assert_close(state, wanted_state)
    backward(loss, wanted, ours, theirs)


def test_windows_go_on_where_the_last_ended():
    data = np.arange(23)
    first, second = list(lstm.windows(data, batch_size=2, length=5))
    np.testing.assert_array_equal(first[0], [[0, 1, 2, 3, 4], [11, 12, 13, 14, 15]])
    np.testing.assert_array_equal(second[0], [[5, 6, 7, 8, 9], [16, 17, 18, 19, 20]])
    np.testing.assert_array_equal(second[1], second[0] + 1)


def test_the_language_model_trains_as_in_pytorch():
    ours, theirs = language_models(layers=1)
    optimizer, their_optimizer = adams(ours, theirs, lr=5e-3)
    text = np.random.default_rng(0).integers(3, size=2001).cumsum() % 11
    found = lstm.train(ours, optimizer, text, 200, batch_size=8, length=10)
    wanted, states = [], None
    while len(wanted) < 200:
        states = None
        for inputs, targets in lstm.windows(text, 8, 10):
            loss, states = their_likelihood(theirs, inputs, targets, states)
            states = [state.detach() for state in states]
            their_optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
            their_optimizer.step()
            wanted.append(loss.item())
    assert_same_curve(found, wanted[:200], progress=0.6)


# The variational autoencoder.


def autoencoders():
    return twins(vae.VariationalAutoencoder(64, 32, 4), TheirAutoencoder(64, 32, 4))


def bound(model, lib, seed):
    """Return the loss, likelihood and divergence for the same data, with either library."""
    rng = np.random.default_rng(seed)
    images = rng.random((16, 1)) * np.linspace(0, 1, 64) ** rng.integers(4, size=(16, 1))
    images = images.astype("float32")
    noise = rng.standard_normal((16, 4)).astype("float32")
    likelihood, divergence = model(lib.from_numpy(images), lib.from_numpy(noise))
    return (divergence - likelihood).mean(), likelihood, divergence


def test_the_autoencoder():
    ours, theirs = autoencoders()
    loss, *parts = bound(ours, gt, seed=0)
    wanted, *wanted_parts = bound(theirs, torch, seed=0)
    for part, wanted_part in zip(parts, wanted_parts, strict=True):
        assert part.shape == (16,)
        assert_close(part, wanted_part)
    backward(loss, wanted, ours, theirs)


def test_the_autoencoder_trains_as_in_pytorch():
    ours, theirs = autoencoders()
    optimizer, their_optimizer = adams(ours, theirs, lr=2e-3)
    found = minimize(lambda step: bound(ours, gt, step)[0], optimizer, 200)
    wanted = minimize(lambda step: bound(theirs, torch, step)[0], their_optimizer, 200)
    assert_same_curve(found, wanted)


# Diffusion.


def unets():
    return twins(diffusion.UNet(8), TheirUNet(8))


def test_the_schedule_adds_and_removes_noise():
    schedule = diffusion.Schedule(20)
    assert schedule.left[-1] < 0.01 and (np.diff(schedule.left) < 0).all()
    rng = np.random.default_rng(0)
    image, noise = (gt.from_numpy(rng.random((1, 1, 8, 8))) for _ in range(2))
    first = schedule.add_noise(image, noise, gt.tensor([0], dtype=gt.int64))
    again = schedule.remove_noise(first, noise, 0, noise)
    np.testing.assert_allclose(again.numpy(), image.numpy(), atol=1e-6)
    # Over many noisy images, one step earlier the variance is that of the schedule.
    known = gt.zeros(1, 1, 200, 100)
    later = schedule.add_noise(known, gt.randn_like(known), gt.tensor([10], dtype=gt.int64))
    seen = later / np.sqrt(1 - schedule.left[10])
    before = schedule.remove_noise(later, seen, 10, gt.randn_like(known))
    assert before.var().item() == pytest.approx(1 - schedule.left[9], rel=0.05)


def denoising(model, lib, seed):
    """Return the loss for the same images, times and noise, with either library."""
    rng = np.random.default_rng(seed)
    images = rng.choice([-1.0, 1.0], (8, 1, 8, 8)).astype("float32")
    images[:] = np.cumsum(images, axis=2).clip(-1, 1)
    times, noise = rng.integers(20, size=8), rng.standard_normal(images.shape).astype("float32")
    schedule = diffusion.Schedule(20)
    if lib is gt:
        arrays = (gt.from_numpy(array) for array in (images, times, noise))
        return diffusion.denoising_loss(model, schedule, *arrays)
    left = schedule.left[times].astype("float32").reshape(-1, 1, 1, 1)
    noisy = torch.from_numpy(np.sqrt(left) * images + np.sqrt(1 - left) * noise)
    predicted = model(noisy, torch.from_numpy(times))
    return functional.mse_loss(predicted, torch.from_numpy(noise))


def test_the_unet():
    ours, theirs = unets()
    backward(denoising(ours, gt, 0), denoising(theirs, torch, 0), ours, theirs)


def test_the_unet_trains_as_in_pytorch():
    ours, theirs = unets()
    optimizer, their_optimizer = adams(ours, theirs, lr=2e-3)
    found = minimize(lambda step: denoising(ours, gt, step), optimizer, 200)
    wanted = minimize(lambda step: denoising(theirs, torch, step), their_optimizer, 200)
    assert_same_curve(found, wanted)


# The policy gradient.


def their_loss(model, episodes):
    states, actions = torch.from_numpy(episodes.states), torch.from_numpy(episodes.actions)
    chosen = torch.distributions.Categorical(logits=model(states)).log_prob(actions)
    advantages = torch.from_numpy(episodes.advantages())
    return -(chosen * advantages)[torch.from_numpy(episodes.alive)].mean()


def their_probabilities(model):
    def probabilities(states):
        with torch.no_grad():
            return model(torch.from_numpy(states)).softmax(-1)[:, 1].numpy()

    return probabilities


def test_the_policy():
    ours, theirs = twins(policy_gradient.Policy(8), their_policy(8))
    rng = np.random.default_rng(0)
    episodes = policy_gradient.play(their_probabilities(theirs), rng, carts=6, times=50)
    assert episodes.lengths().min() < len(episodes.alive), "some poles fall before others"
    loss, wanted = policy_gradient.policy_loss(ours, episodes), their_loss(theirs, episodes)
    backward(loss, wanted, ours, theirs)


def test_advantages_are_what_comes_later():
    alive = np.array([[True, True], [True, True], [True, False]])
    episodes = policy_gradient.Episodes(None, None, alive)
    advantages = episodes.advantages(discount=0.5)
    returns = np.array([[1.75, 1.5], [1.5, 1.0], [1.0, 0.0]])
    counted = returns[alive]
    wanted = (returns - counted.mean()) / counted.std() * alive
    np.testing.assert_allclose(advantages, wanted, atol=1e-6)
    assert episodes.lengths().tolist() == [3, 2]


def test_a_cart_that_is_pushed_right_leans_left():
    environment = policy_gradient.CartPole(1, np.random.default_rng(0))
    environment.states[:] = 0
    for _ in range(8):
        assert environment.step(np.array([True])).all()
    x, speed, angle, turn = environment.states[0]
    assert x > 0 and speed > 0 and angle < 0 and turn < 0
    assert not environment.step(np.array([True])).any(), "at 12 degrees it has fallen"


def test_the_policy_trains_as_in_pytorch():
    ours, theirs = twins(policy_gradient.Policy(16), their_policy(16))
    optimizer, their_optimizer = adams(ours, theirs, lr=0.02)
    rng = np.random.default_rng(0)
    found = policy_gradient.train(ours, optimizer, rng, 40, carts=8, times=60)
    rng, wanted = np.random.default_rng(0), []
    for _ in range(40):
        episodes = policy_gradient.play(their_probabilities(theirs), rng, carts=8, times=60)
        their_optimizer.zero_grad()
        their_loss(theirs, episodes).backward()
        their_optimizer.step()
        wanted.append(float(episodes.lengths().mean()))
    np.testing.assert_allclose(found, wanted, rtol=0.02)
    assert np.mean(wanted[-5:]) > 1.5 * np.mean(wanted[:5])
