"""Gradients of gamma, beta and Dirichlet draws on the device "cluster"."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
device = pytest.importorskip("gt.torch")

DTYPES = [torch.float32, torch.float64]
#: The largest relative error of PyTorch's approximations on the CPU, which differ from each other.
OF_GAMMA, OF_BETA = 1e-3, 5e-2


def drawn(make, *parameters, dtype):
    """Draw 20 samples on the device, with the weighted sum's gradients by the parameters."""
    given = [torch.tensor(of, dtype=dtype, device="cluster").requires_grad_() for of in parameters]
    torch.manual_seed(0)
    samples = make(*given).rsample((20,))
    assert samples.device.type == "cluster" and samples.dtype == dtype
    samples.backward(weights(samples))
    return samples.detach().cpu(), [of.grad.cpu() for of in given]


def weights(samples):
    generator = torch.Generator().manual_seed(1)
    return torch.rand(samples.shape, generator=generator).to(samples)


def by_the_cpu(function, parameter, samples):
    """Return the gradient by a parameter, of PyTorch's kernel for derivatives of samples."""
    return (weights(samples) * function(samples, parameter.expand_as(samples))).sum(0)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_gamma(dtype):
    concentration, rate = [0.05, 0.3, 1.0, 4.0, 50.0, 2000.0], [0.5, 1.0, 2.0, 3.0, 1.0, 10.0]
    samples, grads = drawn(torch.distributions.Gamma, concentration, rate, dtype=dtype)
    a, r = torch.tensor(concentration, dtype=dtype), torch.tensor(rate, dtype=dtype)
    expected = by_the_cpu(lambda x, a: torch._standard_gamma_grad(a, x * r) / r, a, samples)
    torch.testing.assert_close(grads[0], expected, rtol=OF_GAMMA, atol=1e-30)
    expected = -(weights(samples) * samples / r).sum(0)
    torch.testing.assert_close(grads[1], expected, rtol=1e-5, atol=1e-30)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_beta(dtype):
    first, second = [0.3, 1.0, 2.0, 5.0, 40.0, 8.0], [0.5, 1.0, 7.0, 3.0, 60.0, 900.0]
    samples, grads = drawn(torch.distributions.Beta, first, second, dtype=dtype)
    a, b = torch.tensor(first, dtype=dtype), torch.tensor(second, dtype=dtype)

    def by_first(x, a):
        return (1 - x) * torch._dirichlet_grad(x, a, a + b.expand_as(x))

    def by_second(x, b):
        return -x * torch._dirichlet_grad(1 - x, b, a.expand_as(x) + b)

    torch.testing.assert_close(grads[0], by_the_cpu(by_first, a, samples), rtol=OF_BETA, atol=1e-7)
    torch.testing.assert_close(grads[1], by_the_cpu(by_second, b, samples), rtol=OF_BETA, atol=1e-7)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dirichlet(dtype):
    concentration = [[0.3, 1.0, 2.0], [5.0, 40.0, 8.0]]
    samples, (grad,) = drawn(torch.distributions.Dirichlet, concentration, dtype=dtype)
    torch.testing.assert_close(samples.sum(-1), torch.ones(20, 2, dtype=dtype))
    a = torch.tensor(concentration, dtype=dtype).expand_as(samples)
    w = weights(samples)
    slopes = torch._dirichlet_grad(samples, a, a.sum(-1, keepdim=True).expand_as(a).contiguous())
    expected = (slopes * (w - (samples * w).sum(-1, keepdim=True))).sum(0)
    torch.testing.assert_close(grad, expected, rtol=OF_BETA, atol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_derivatives(dtype):
    """Both kernels agree with differences of the distribution functions, which SciPy has."""
    special = pytest.importorskip("scipy.special")
    stats = pytest.importorskip("scipy.stats")
    quantiles = np.array([0.01, 0.2, 0.5, 0.9, 0.999])
    kind = {torch.float32: np.float32, torch.float64: np.float64}[dtype]

    def check(operator, given, by_parameter, density):
        found = operator(*(torch.from_numpy(of).to("cluster", dtype) for of in given))
        expected = torch.from_numpy(-by_parameter / density)
        torch.testing.assert_close(found.cpu().double(), expected, rtol=1e-4, atol=1e-9)

    for a in (0.125, 0.75, 3.0, 25.0, 400.0):
        x = stats.gamma.ppf(quantiles, a).astype(kind).astype(np.float64)
        x = x[x > 1e-30]
        near = [special.gammainc(a * (1 + of), x) for of in (1e-5, -1e-5)]
        by_a = (near[0] - near[1]) / a / 2e-5
        given = (np.full_like(x, a), x)
        check(torch._standard_gamma_grad, given, by_a, stats.gamma.pdf(x, a))
        for b in (0.25, 2.0, 30.0):
            x = stats.beta.ppf(quantiles, a, b).astype(kind).astype(np.float64)
            x = x[(x > 1e-6) & (x < 0.999)]
            near = [special.betainc(a * (1 + of), b, x) for of in (1e-5, -1e-5)]
            by_a = (near[0] - near[1]) / a / 2e-5
            given = (x, np.full_like(x, a), np.full_like(x, a + b))
            check(torch._dirichlet_grad, given, by_a, stats.beta.pdf(x, a, b) * (1 - x))


def test_small_concentrations():
    """Samples do not underflow to 0 or nan, and neither do gradients."""
    concentration = torch.full((1000, 3), 1e-3, device="cluster", requires_grad=True)
    samples = torch.distributions.Dirichlet(concentration).rsample()
    assert bool(((samples > 0) & (samples < 1)).all())
    assert torch.allclose(samples.sum(-1).cpu(), torch.ones(1000), atol=1e-5)
    (samples * samples).sum().backward()
    assert bool(concentration.grad.isfinite().all())


def test_a_fit():
    """A variational fit: the beta distribution that maximizes the expectation of log(x (1 - x))."""
    torch.manual_seed(0)
    raw = torch.tensor([1.0, 2.0], device="cluster", requires_grad=True)
    optimizer = torch.optim.Adam([raw], lr=0.1)
    for _ in range(60):
        optimizer.zero_grad()
        a, b = raw.exp()
        x = torch.distributions.Beta(a, b).rsample((200,))
        loss = -(x.log() + (1 - x).log()).mean()
        loss.backward()
        optimizer.step()
    mean = (raw.exp()[0] / raw.exp().sum()).item()
    assert mean == pytest.approx(0.5, abs=0.05)
