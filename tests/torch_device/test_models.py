"""Unmodified models of `transformers` and torchvision on the device "cluster"."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
device = pytest.importorskip("gt.torch")

transformers = pytest.importorskip("transformers")

from models_of_torch import MODELS, generated, make, recurrent, resnet, train  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("name", MODELS)
def test_transformers(name):
    """Losses and generated tokens are the same as on the CPU."""
    model, inputs, prompt = make(name)
    expected, on_host = train(model, inputs, "cpu")
    found, on_cluster = train(model, inputs, "cluster")
    assert found == pytest.approx(expected, abs=1e-4)
    assert expected[-1] < expected[0]
    if prompt:
        words = generated(on_cluster, prompt, "cluster")
        assert words.device.type == "cluster"
        assert words.cpu().equal(generated(on_host, prompt, "cpu"))


def test_resnet():
    """A network of torchvision: convolutions, batch normalization, pooling."""
    pytest.importorskip("torchvision")
    *found, total = resnet("cluster", lambda: None)
    *expected, total_on_host = resnet("cpu", lambda: None)
    assert found == pytest.approx(expected, abs=1e-4)
    # Batch statistics of few images amplify the differences from the order of sums.
    assert total == pytest.approx(total_on_host, abs=1e-2)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent(kind):
    """Recurrent networks of `torch.nn`."""
    found, expected = (recurrent(kind, of, lambda: None) for of in ("cluster", "cpu"))
    assert found == pytest.approx(expected, abs=1e-5)


OPTIMIZERS = [
    "ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "LBFGS", "NAdam",
    "RAdam", "RMSprop", "Rprop", "SGD",
]  # fmt: skip


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("foreach", [None, False, True])
def test_optimizers(name, foreach):
    """Steps of `torch.optim` match the CPU, with and without `foreach`."""
    if name == "LBFGS" and foreach is not None:
        pytest.skip("has no such choice")

    def trained(device):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
        model = model.to(device)
        options = {} if foreach is None else {"foreach": foreach}
        optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.01, **options)
        inputs = torch.randn(5, 4, generator=torch.Generator().manual_seed(0)).to(device)

        def closure():
            optimizer.zero_grad()
            loss = model(inputs).pow(2).sum()
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)
        return [parameter.detach().cpu() for parameter in model.parameters()]

    for found, expected in zip(trained("cluster"), trained("cpu"), strict=True):
        assert torch.allclose(found, expected, atol=1e-5), (found - expected).abs().max()
