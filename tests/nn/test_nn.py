"""Modules: registration of parameters, saving and loading, modes, layers."""

import gt
import numpy as np
import pytest
from gt import nn


class Plain(nn.Module):
    """A module with parameters in every place where they are registered."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(gt.ones(2, 3))
        self.fixed = gt.ones(2)
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 2, bias=False)])
        self.table = nn.ParameterDict({"a": gt.zeros(1), "b": gt.ones(1, requires_grad=True)})
        self.not_searched = [nn.Linear(3, 3), {"c": nn.Parameter(gt.zeros(1))}]
        self.sub = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        self.register_buffer("mean", gt.zeros(2))

    def forward(self, x):
        return x


def test_parameters_are_found():
    model = Plain()
    names = [name for name, _ in model.named_parameters()]
    assert names == [
        "weight",
        "layers.0.weight",
        "layers.0.bias",
        "layers.1.weight",
        "table.a",
        "table.b",
        "sub.0.weight",
        "sub.0.bias",
    ]
    assert [tuple(p.shape) for p in model.parameters()][:4] == [(2, 3), (3, 3), (3,), (2, 3)]
    assert [name for name, _ in model.named_buffers()] == ["mean"]
    assert all(p.requires_grad and p.is_leaf for p in model.parameters())


def test_a_model_may_list_its_parameters_itself():
    class Listed(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = gt.randn(3, 2, requires_grad=True)
            self._parameters = [self.w, gt.zeros(2, requires_grad=True)]

    model = Listed()
    assert [name for name, _ in model.named_parameters()] == ["w", "_parameters.1"]
    assert model.parameters()[0] is model.w


def test_shared_parameters_count_once():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
            self.second.weight = self.first.weight

    model = Tied()
    names = [name for name, _ in model.named_parameters()]
    assert names == ["first.weight", "first.bias", "second.bias"]
    optimizer = gt.optim.SGD(model.parameters(), lr=1.0)
    before = model.first.weight.detach().numpy()
    (model.first.weight.sum() + model.second.weight.sum()).backward()
    optimizer.step()
    np.testing.assert_allclose(model.second.weight.detach().numpy(), before - 2, rtol=1e-6)


def test_states_round_trip():
    gt.manual_seed(1)
    first = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    second = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    x = gt.randn(5, 3)
    assert first(x).tolist() != second(x).tolist()
    state = first.state_dict()
    assert list(state) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert not any(tensor.requires_grad for tensor in state.values())
    identities = [id(p) for p in second.parameters()]
    second.load_state_dict(state)
    assert first(x).tolist() == second(x).tolist()
    assert [id(p) for p in second.parameters()] == identities
    assert all(p.requires_grad and p.is_leaf for p in second.parameters())


def test_a_state_shares_the_memory_of_its_parameters():
    layer = nn.Linear(2, 2)
    state, before = layer.state_dict(), layer.weight.tolist()
    kept = {name: value.clone() for name, value in state.items()}
    for value in state.values():
        value.mul_(0.5)
    np.testing.assert_allclose(layer.weight.tolist(), np.array(before) * 0.5, rtol=1e-6)
    with gt.no_grad():
        layer.weight += 1
    assert state["weight"].tolist() == layer.weight.tolist()
    layer.load_state_dict(kept)
    assert layer.weight.tolist() == before == state["weight"].tolist()


def test_states_load_from_arrays():
    layer = nn.Linear(2, 1)
    layer.load_state_dict({"weight": np.array([[1.0, 2.0]], "float32"), "bias": np.zeros(1, "f4")})
    assert layer(gt.tensor([3, 4])).tolist() == [11]
    assert layer.weight.dtype == gt.float32


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s.pop("bias"), ["Missing", "'bias'", "strict=False"]),
        (lambda s: s.update(extra=gt.ones(1)), ["Unexpected", "'extra'"]),
        (
            lambda s: s.update(weigth=s.pop("weight")),
            ["Missing", "Unexpected", "'weight' may be 'weigth'"],
        ),
        (
            lambda s: (s.update(weight=gt.ones(3, 2)), s.pop("bias")),
            ["for weight", "(3, 2)", "(2, 3)", "Missing"],
        ),
    ],
)
def test_mismatched_states_are_rejected(change, words):
    layer = nn.Linear(3, 2)
    state, before = layer.state_dict(), layer.weight.tolist()
    change(state)
    with pytest.raises(RuntimeError, match="Linear") as caught:
        layer.load_state_dict(state)
    for word in words:
        assert word in str(caught.value), caught.value
    assert layer.weight.tolist() == before, "no value was loaded"
    if "size" not in str(caught.value):
        found = layer.load_state_dict(state, strict=False)
        assert found.missing_keys or found.unexpected_keys


def test_modes_reach_all_modules():
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Dropout(0.5)))
    assert all(module.training for module in model.modules())
    assert model.eval() is model and not any(module.training for module in model.modules())
    x = gt.ones(1, 2)
    assert model(x).tolist() == model(x).tolist()
    assert all(module.training for module in model.train().modules())


def test_zero_grad_and_freezing():
    model = nn.Linear(2, 2)
    model(gt.ones(1, 2)).sum().backward()
    assert model.weight.grad.tolist() == [[1, 1], [1, 1]]
    model.zero_grad()
    assert model.weight.grad is None and model.bias.grad is None
    model.requires_grad_(False)
    assert not model(gt.ones(1, 2)).requires_grad


def test_dropout():
    gt.manual_seed(0)
    x = gt.ones(100, 1000, requires_grad=True)
    layer = nn.Dropout(0.3)
    out = layer(x)
    values = out.detach().numpy()
    np.testing.assert_allclose(np.unique(values), [0, 1 / 0.7], rtol=1e-6)
    assert abs((values == 0).mean() - 0.3) < 0.01 and abs(values.mean() - 1) < 0.01
    out.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), values)
    assert (layer(x).detach().numpy() != values).any(), "each call draws new numbers"
    assert layer.eval()(x) is x
    assert nn.Dropout(0)(x) is x
    assert nn.Dropout(1)(gt.ones(3)).tolist() == [0, 0, 0]


def test_containers():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    assert len(model) == 3 and isinstance(model[1], nn.ReLU) and len(list(model)) == 3
    named = nn.Sequential({"first": nn.Linear(2, 2), "last": nn.Tanh()})
    assert [name for name, _ in named.named_parameters()] == ["first.weight", "first.bias"]
    with pytest.raises(TypeError, match="modules, not"):
        nn.Sequential(nn.ReLU(), 3)
    blocks = nn.ModuleList([nn.Linear(2, 2)])
    blocks.append(nn.Linear(2, 2))
    assert len(blocks) == 2 and len(list(blocks.named_parameters())) == 4


def test_repr():
    assert repr(nn.Linear(2, 3)) == "Linear(in_features=2, out_features=3, bias=True)"
    model = nn.Sequential(nn.Linear(2, 3, bias=False), nn.Sequential(nn.Dropout(0.1)))
    assert repr(model) == (
        "Sequential(\n  (0): Linear(in_features=2, out_features=3, bias=False)\n"
        "  (1): Sequential(\n    (0): Dropout(p=0.1, inplace=False)\n  )\n)"
    )


def test_calling_a_module_without_forward_raises():
    with pytest.raises(NotImplementedError, match="Nothing must define forward"):
        type("Nothing", (nn.Module,), {})()(1)


def test_initial_values_of_linear_are_within_bounds():
    gt.manual_seed(0)
    layer = nn.Linear(100, 50)
    weight = layer.weight.detach().numpy()
    assert weight.shape == (50, 100) and layer.bias.shape == (50,)
    assert abs(weight).max() <= 0.1 and weight.std() > 0.05
    with pytest.raises(ValueError, match="linear"):
        layer(gt.ones(2, 99))


def test_client_nn_is_nn():
    import gt.client.nn

    assert gt.client.nn.Linear is nn.Linear


def test_frozen_parameters_stay_parameters():
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    names = list(model.state_dict())
    model.requires_grad_(False)
    assert len(model.parameters()) == 4 and list(model.state_dict()) == names
    assert not any(parameter.requires_grad for parameter in model.parameters())
    model.requires_grad_(True)
    assert all(parameter.requires_grad for parameter in model.parameters())

    class Frozen(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter([1.0, 2.0], requires_grad=False)

    assert list(Frozen().state_dict()) == ["table"]
    assert isinstance(Frozen().table, nn.Parameter) and not isinstance(gt.ones(1), nn.Parameter)


def test_shared_parameters_have_all_their_names():
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    model[1].weight = model[0].weight
    assert len(model.parameters()) == 1
    assert list(model.state_dict()) == ["0.weight", "1.weight"]
    model.load_state_dict({"0.weight": gt.ones(2, 2), "1.weight": gt.ones(2, 2)})
    assert model[1].weight.tolist() == [[1, 1], [1, 1]]


def test_binary_cross_entropy_is_finite_at_the_edges():
    p = gt.tensor([0.0, 1.0, 0.5], requires_grad=True)
    nn.binary_cross_entropy(p, gt.tensor([0.0, 1.0, 1.0])).backward()
    np.testing.assert_allclose(p.grad.numpy(), [0, 0, -2 / 3], rtol=1e-6)
    wrong = gt.tensor([0.0, 1.0], requires_grad=True)
    loss = nn.binary_cross_entropy(wrong, gt.tensor([1.0, 0.0]))
    loss.backward()
    assert loss.item() == 100 and np.isfinite(wrong.grad.numpy()).all()


def test_binary_cross_entropy_with_logits_is_that_of_sigmoid():
    x, y = gt.randn(20) * 3, (gt.rand(20) > 0.5).float()
    want = nn.binary_cross_entropy(x.sigmoid(), y).item()
    assert abs(nn.BCEWithLogitsLoss()(x, y).item() - want) < 1e-5


def test_class_indices_must_be_integers():
    logits = gt.randn(2, 3)
    with pytest.raises(TypeError, match="dtype=gt.int64"):
        nn.CrossEntropyLoss()(logits, gt.tensor([0, 1]))
    loss = nn.CrossEntropyLoss()(logits, gt.tensor([0, 1], dtype=gt.int64)).item()
    assert nn.CrossEntropyLoss()(logits, [0, 1]).item() == loss
    assert nn.CrossEntropyLoss()(logits, np.array([0, 1])).item() == loss


def test_module_names_slices_and_conversion():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(inplace=True), nn.Linear(3, 1))
    assert [name for name, _ in model.named_modules()] == ["", "0", "1", "2"]
    assert isinstance(model[0:2], nn.Sequential) and len(model.append(nn.Tanh())) == 4
    seen = []
    model.apply(seen.append)
    assert seen[-1] is model and len(seen) == 5
    assert {p.dtype for p in model.to(gt.float64).parameters()} == {gt.float64}
    with pytest.raises(ValueError, match="-1"):
        nn.Linear(-1, 2)

    class Forgetful(nn.Module):
        def __init__(self):
            self.weight = gt.ones(1)

    with pytest.raises(AttributeError, match="super"):
        Forgetful()


def test_forward_hooks_see_and_change_outputs():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    seen = []
    first = model[0].register_forward_hook(lambda module, args, out: seen.append(out.shape))
    x = gt.ones(4, 2)
    plain = model(x)
    with model.register_forward_hook(lambda module, args, out: out + 1):
        assert gt.allclose(model(x), plain + 1)
    first.remove()
    assert gt.allclose(model(x), plain)
    assert seen == [(4, 3), (4, 3)]


def test_copies_have_hooks_gradients_and_frozen_parameters():
    import copy

    layer = nn.Linear(2, 2)
    layer(gt.ones(1, 2)).sum().backward()
    layer.register_forward_hook(lambda module, args, out: out * 0)
    layer.bias.requires_grad_(False)
    other = copy.deepcopy(layer)
    assert list(other.state_dict()) == ["weight", "bias"]
    assert other.weight.grad.tolist() == layer.weight.grad.tolist()
    assert other(gt.ones(1, 2)).tolist() == [[0, 0]]
    with pytest.raises(RuntimeError, match="history"):
        copy.deepcopy(layer.weight * 2)


def test_registering_and_deleting_buffers():
    module = nn.Module()
    module.register_buffer("mean", gt.zeros(2))
    module.register_buffer("none", None)
    module.register_buffer("scratch", gt.ones(1), persistent=False)
    assert list(module.state_dict()) == ["mean"]
    assert [name for name, _ in module.named_buffers()] == ["mean", "scratch"]
    del module.mean
    assert list(module.state_dict()) == []
    for name, value, kind in [("a.b", gt.ones(1), KeyError), ("training", gt.ones(1), KeyError)]:
        with pytest.raises(kind):
            module.register_buffer(name, value)
    with pytest.raises(TypeError):
        module.register_buffer("three", 3)


def test_layer_norm_of_float16_and_invalid_indices():
    x = gt.tensor([0.0, 1000, 2000, -1000], dtype=gt.float16)
    assert np.allclose(
        nn.functional.layer_norm(x, 4).tolist(), [-0.447, 0.447, 1.342, -1.342], atol=2e-3
    )
    table = nn.Embedding(3, 2)
    for wrong in (gt.tensor([0.7]), gt.tensor([True])):
        with pytest.raises(TypeError, match="indices must be integers"):
            table(wrong)


def test_ignored_targets_may_have_infinite_losses():
    logits = gt.tensor([[-float("inf"), 1, 2], [0, 1, 2]])
    target = gt.tensor([9, 2], dtype=gt.int64)
    loss = nn.cross_entropy_loss(logits, target, ignore_index=9)
    assert abs(loss.item() - 0.4076) < 1e-3


def test_assigning_a_module_before_init_raises():
    class Forgetful(gt.nn.Module):
        def __init__(self):
            self.layer = gt.nn.Linear(1, 1)

    with pytest.raises(AttributeError, match=r"call super\(\).__init__\(\) before"):
        Forgetful()
