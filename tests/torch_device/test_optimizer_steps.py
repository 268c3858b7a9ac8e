"""Steps of PyTorch's optimizers on the device are atomic."""

import gt
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
pytest.importorskip("gt.torch")
nn, F = torch.nn, torch.nn.functional

OPTIMIZERS = {
    "ASGD": lambda p: torch.optim.ASGD(p),
    "Adadelta": lambda p: torch.optim.Adadelta(p),
    "Adafactor": lambda p: torch.optim.Adafactor(p),
    "Adagrad": lambda p: torch.optim.Adagrad(p),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    "Adam fused": lambda p: torch.optim.Adam(p, lr=0.01, fused=True),
    "AdamW foreach": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=True),
    "AdamW one by one": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=False),
    "AdamW fused": lambda p: torch.optim.AdamW(p, lr=0.01, fused=True),
    "Adamax": lambda p: torch.optim.Adamax(p),
    "NAdam": lambda p: torch.optim.NAdam(p),
    "RAdam": lambda p: torch.optim.RAdam(p),
    "RMSprop": lambda p: torch.optim.RMSprop(p, momentum=0.9, centered=True),
    "Rprop": lambda p: torch.optim.Rprop(p),
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "SGD fused": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, fused=True),
    "SGD momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
}


class Training:
    def __init__(self, make):
        torch.manual_seed(1)
        layers = nn.Linear(5, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 4)
        self.model = nn.Sequential(*layers).to("cluster")
        self.x = torch.randn(8, 5).to("cluster")
        self.optimizer = make(list(self.model.parameters()))

    def step(self, bad=False):
        labels = torch.tensor([0, 1, 2, 11 if bad else 3] * 2).to("cluster")
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(self.x), labels)
        loss.backward()
        if not bad or not isinstance(self.optimizer, torch.optim.Adafactor):
            self.optimizer.step()
        else:
            # Adafactor waits for values in its step.
            with pytest.raises(gt.WorkerError, match="cross_entropy: target 11 is not in"):
                self.optimizer.step()
        return loss

    def values(self):
        kept = [
            value
            for own in self.optimizer.state.values()
            for name, value in sorted(own.items())
            if torch.is_tensor(value) and value.device.type == "cluster"
        ]
        tensors = [*self.model.parameters(), *kept]
        return [tensor.detach().cpu().numpy().tobytes() for tensor in tensors]


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("before", [0, 6])
def test_a_bad_label_changes_nothing(name, before):
    training = Training(OPTIMIZERS[name])
    for _ in range(before):
        training.step()
    values = training.values()
    loss = training.step(bad=True)
    assert training.values()[: len(values)] == values
    with pytest.raises(gt.WorkerError, match=r"cross_entropy: target 11 is not in \[0, 4\)"):
        loss.item()
    losses = [training.step().item() for _ in range(12)]
    assert losses[-1] < losses[0] and training.values() != values


def test_what_a_first_step_begins_with_is_what_pytorch_begins_with():
    """The step after a rolled-back first step equals PyTorch's first step."""
    for make in (OPTIMIZERS["Rprop"], OPTIMIZERS["SGD momentum"]):
        first, second = Training(make), Training(make)
        first.step(bad=True)
        # In training mode the running statistics of the batch norm are not used.
        assert first.step().item() == second.step().item()
        assert first.values() == second.values()


def test_running_statistics_stay_where_a_batch_has_failed():
    norm = nn.BatchNorm1d(3).to("cluster")
    table = torch.randn(4, 3).to("cluster")
    for step in range(6):
        bad = step in (0, 4)
        before = norm.running_mean.tolist(), norm.running_var.tolist()
        norm(F.embedding(torch.tensor([0, 1, 9 if bad else 2]).to("cluster"), table))
        assert (before == (norm.running_mean.tolist(), norm.running_var.tolist())) == bad


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda w, i: F.cross_entropy(w, torch.cat([i, i])), "cross_entropy: target 11 is not in"),
        (lambda w, i: F.nll_loss(w, torch.cat([i, i]), reduction="sum"), "nll_loss: target 11 is"),
        (lambda w, i: F.embedding(i, w).sum(), "embedding: index 11 is not in [0, 2)"),
    ],
)
def test_a_gradient_is_refused_in_the_words_and_at_the_line_of_what_was_called(act, words):
    w = torch.ones(2, 3, device="cluster", requires_grad=True)
    loss = act(w, torch.tensor([11]).to("cluster"))
    loss.backward()
    for tensor in (loss, w.grad):
        with pytest.raises(gt.WorkerError) as caught:
            tensor.tolist()
        text = str(caught.value)
        assert text.startswith(words), text
        assert f"{__file__}:{act.__code__.co_firstlineno}" in text, text
