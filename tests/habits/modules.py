"""Everyday use of modules."""

import copy
import io
import pickle

from habits.common import batch, classifier, settle, waves


def habit_first_parameter(torch):
    model = classifier(torch)
    p = next(model.parameters())
    assert p is model[0].weight and next(model.parameters()) is p
    assert p.device == p.data.device and p.dtype == torch.float32
    assert next(iter(model.named_parameters()))[0] == "0.weight"


def habit_counting_parameters(torch):
    model = classifier(torch)
    for p in model[0].parameters():
        p.requires_grad = False
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert trained == 27 and sum(p.numel() for p in model.parameters()) == 67
    assert sum(p.nelement() * p.element_size() for p in model.parameters()) == 268


def habit_names_of_parameters(torch):
    model = classifier(torch)
    names = [name for name, p in model.named_parameters()]
    assert names == ["0.weight", "0.bias", "2.weight", "2.bias"]
    decayed = [p for name, p in model.named_parameters() if name.endswith("weight")]
    assert len(decayed) == 2 and all(p.dim() >= 2 for p in decayed)
    assert dict(model.named_parameters())["2.bias"].shape == (3,)
    assert [name for name, _ in model.named_modules()] == ["", "0", "1", "2"]
    assert [type(m).__name__ for m in model.children()] == ["Linear", "ReLU", "Linear"]


def habit_sequential_is_a_list(torch):
    nn = torch.nn
    layers = [nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)]
    model = nn.Sequential(*layers)
    assert model[0] is layers[0] and model[-1] is layers[2] and len(model) == 3
    assert isinstance(model[:2], nn.Sequential) and len(model[:2]) == 2
    model[1] = nn.Tanh()
    model.append(nn.Sigmoid())
    model.add_module("last", nn.Identity())
    assert model.last is model[4] and [type(m) for m in model][1] is nn.Tanh
    assert nn.Sequential(*list(model.children())[:-1])(torch.zeros(1, 2)).shape == (1, 1)
    del model[-1]
    assert len(model) == 4


def habit_named_sequential(torch):
    from collections import OrderedDict

    nn = torch.nn
    model = nn.Sequential(OrderedDict(fc=nn.Linear(2, 3), act=nn.ReLU()))
    assert model.fc.out_features == 3 and list(model.state_dict()) == ["fc.weight", "fc.bias"]
    assert [name for name, _ in model.named_children()] == ["fc", "act"]


def habit_lists_and_dicts_of_modules(torch):
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])
            self.heads = nn.ModuleDict({"a": nn.Linear(4, 1), "b": nn.Linear(4, 2)})
            self.scales = nn.ParameterList([nn.Parameter(torch.ones(1)) for _ in range(2)])

        def forward(self, x, head="a"):
            for layer, scale in zip(self.layers, self.scales, strict=True):
                x = torch.relu(layer(x)) * scale
            return self.heads[head](x)

    model = settle(torch, Net())
    model.layers.append(nn.Linear(4, 4))
    model.layers.extend([nn.Identity()])
    assert len(model.layers) == 4 and "b" in model.heads and list(model.heads.keys()) == ["a", "b"]
    assert list(model.state_dict())[:3] == ["layers.0.weight", "layers.0.bias", "layers.1.weight"]
    model.layers, model.scales = model.layers[:2], model.scales
    return model(waves(torch, 2, 4), head="b").tolist()


def habit_state_in_the_order_of_pytorch(torch):
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2)
            self.register_buffer("steps", torch.zeros(1))
            self.scale = nn.Parameter(torch.ones(1))
            self.norm = nn.BatchNorm1d(2)
            self.register_buffer("scratch", torch.zeros(1), persistent=False)

    return list(Net().state_dict()), [name for name, _ in Net().named_buffers()]


def habit_load_says_what_is_missing(torch):
    model = classifier(torch)
    state = {name: value for name, value in model.state_dict().items() if not name.startswith("2.")}
    state["head.weight"] = torch.zeros(1)
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert missing == ["2.weight", "2.bias"] and unexpected == ["head.weight"]
    result = model.load_state_dict(state, strict=False)
    assert result.missing_keys == missing and result.unexpected_keys == unexpected
    assert str(model.load_state_dict(model.state_dict())) == "<All keys matched successfully>"


def habit_states_of_other_models(torch):
    model, other = classifier(torch), classifier(torch)
    saved = {f"module.{name}": value * 2 for name, value in model.state_dict().items()}
    state = {name.replace("module.", ""): value for name, value in saved.items()}
    other.load_state_dict(state)
    own = other.state_dict()
    own.update({k: v for k, v in model.state_dict().items() if v.shape == own[k].shape})
    other.load_state_dict(own)
    assert all(
        torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True)
    )
    state.pop("2.bias")
    assert other.load_state_dict(state, strict=False).missing_keys == ["2.bias"]


def habit_saving_a_model(torch):
    model, file = classifier(torch), io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    other.load_state_dict(torch.load(file, weights_only=True))
    other.eval()
    x, _ = batch(torch)
    assert torch.allclose(other(x), model(x))


def habit_copies_of_modules(torch):
    model = classifier(torch)
    x, _ = batch(torch)
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.allclose(again(x), model(x)) and again[0].weight is not model[0].weight
        assert str(again) == str(model) and again.training
    shallow = copy.copy(model)
    assert shallow[0].weight is model[0].weight
    clones = torch.nn.ModuleList([copy.deepcopy(model[0]) for _ in range(3)])
    assert len({id(layer.weight) for layer in clones}) == 3


def habit_text_of_modules(torch):
    nn = torch.nn
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
    block = nn.ModuleDict({"body": model, "drop": nn.Dropout(0.1), "pool": nn.MaxPool2d(2)})
    return (
        str(block),
        repr(nn.LSTM(4, 8, 2, batch_first=True)),
        str(nn.Embedding(5, 3, padding_idx=0)),
    )


def habit_modules_in_other_dtypes(torch):
    model = classifier(torch)
    x, _ = batch(torch)
    assert model.bfloat16()(x.bfloat16()).dtype == torch.bfloat16
    assert (
        model.half()[0].weight.dtype == torch.float16
        and model.float()[2].bias.dtype == torch.float32
    )
    assert model.double()(x.double()).dtype == torch.float64
    assert model.to(torch.float32).to("cpu")[0].weight.dtype == torch.float32
    assert model.to(device="cpu", dtype=torch.float64) is model and model.cpu() is model
    norm = torch.nn.BatchNorm1d(2).half()
    assert (
        norm.running_mean.dtype == torch.float16 and norm.num_batches_tracked.dtype == torch.int64
    )


def habit_modules_go_to_devices(torch):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = classifier(torch).to(device)
    weight = model[0].weight
    assert model.to(device)[0].weight is weight and model.to(torch.device(device)) is model
    if torch.cuda.is_available():
        model = torch.nn.DataParallel(model.cuda())
    assert all(p.device == next(model.parameters()).device for p in model.parameters())


def habit_modes(torch):
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5))
    assert model.training and model.eval() is model and not model[1].training
    x = torch.ones(1, 2)
    assert torch.equal(model(x), model(x)) and model.train().training
    was = model.training
    model.train(False)
    assert not model.training and model.train(was)[1].training
    model[1].p = 0.0
    assert torch.equal(model(x), model(x))


def habit_freezing(torch):
    model = classifier(torch)
    for p in model.parameters():
        p.requires_grad_(False)
    model[2] = torch.nn.Linear(model[2].in_features, 5)
    x, _ = batch(torch)
    model(x).sum().backward()
    assert model[0].weight.grad is None and model[2].weight.grad.shape == (5, 8)
    assert [p.requires_grad for p in model.parameters()] == [False, False, True, True]
    model.requires_grad_(True)
    assert all(p.requires_grad for p in model.parameters())


def habit_zero_grad(torch):
    model = classifier(torch)
    x, _ = batch(torch)
    model(x).sum().backward()
    model.zero_grad(set_to_none=False)
    assert model[0].weight.grad.abs().sum() == 0
    model.zero_grad()
    assert model[0].weight.grad is None
    for p in model.parameters():
        p.grad = None


def habit_tied_weights(torch):
    nn = torch.nn

    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte = nn.Embedding(5, 4)
            self.lm_head = nn.Linear(4, 5, bias=False)
            self.wte.weight = self.lm_head.weight

    model = Tied()
    assert len(list(model.parameters())) == 1 and len(model.state_dict()) == 2
    assert model.wte.weight is model.lm_head.weight
    assert copy.deepcopy(model).wte.weight.shape == (5, 4)
    model.lm_head.weight.data.zero_()
    assert model.wte(torch.tensor([1], dtype=torch.long)).abs().sum() == 0


def habit_hooks_keep_activations(torch):
    model, kept = classifier(torch), {}

    def keep(name):
        def hook(module, inputs, output):
            kept[name] = output.detach()

        return hook

    handles = [m.register_forward_hook(keep(n)) for n, m in model.named_modules() if n]
    x, _ = batch(torch)
    model(x)
    for handle in handles:
        handle.remove()
    assert sorted(kept) == ["0", "1", "2"] and kept["1"].min() >= 0
    grads = []
    model[1].register_full_backward_hook(lambda m, gin, gout: grads.append(gout[0].shape))
    model(x).sum().backward()
    assert grads == [(6, 8)]


def habit_replacing_parts(torch):
    nn = torch.nn
    model = classifier(torch)
    for name, child in model.named_children():
        if isinstance(child, nn.ReLU):
            setattr(model, name, nn.GELU())
    assert type(model[1]) is nn.GELU and getattr(model, "0") is model[0]
    assert model.get_submodule("2") is model[2] and model.get_parameter("2.bias") is model[2].bias
    model.fc = nn.Identity()
    assert "fc" in model._modules and hasattr(model, "fc")
    del model.fc
    assert not hasattr(model, "fc") and "0" in dict(model.named_children())
