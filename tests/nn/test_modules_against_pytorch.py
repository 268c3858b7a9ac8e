"""Programs that use modules have the same results in PyTorch and in GT."""

import copy
import io
import pickle

import gt
import numpy as np
import pytest

torch = pytest.importorskip("torch")
BOTH = pytest.mark.parametrize("lib", [torch, gt], ids=["torch", "gt"])


def both(program):
    """Return the results of a program with PyTorch and with GT."""
    return program(torch), program(gt)


def model_of(lib):
    """Return a small model with buffers, a frozen parameter and a module with two names."""

    class Block(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = lib.nn.Parameter(lib.ones(2, 3))
            self.fixed = lib.nn.Parameter(lib.zeros(1), requires_grad=False)
            self.register_parameter("bias", None)
            self.register_buffer("mean", lib.zeros(2))
            self.register_buffer("scratch", lib.ones(1), persistent=False)
            self.first = lib.nn.Linear(3, 3)
            self.act = lib.nn.ReLU()
            self.again = self.first
            self.seq = lib.nn.Sequential(lib.nn.Linear(3, 2), lib.nn.Tanh())

        def forward(self, x):
            return self.seq(self.act(self.first(x)))

    return Block()


@pytest.mark.parametrize(
    "ask",
    [
        lambda m: [n for n, _ in m.named_parameters()],
        lambda m: [n for n, _ in m.named_parameters(remove_duplicate=False)],
        lambda m: [n for n, _ in m.named_parameters("x", recurse=False)],
        lambda m: [n for n, _ in m.named_buffers()],
        lambda m: [n for n, _ in m.named_modules()],
        lambda m: [n for n, _ in m.named_modules(remove_duplicate=False)],
        lambda m: [n for n, _ in m.named_children()],
        lambda m: list(m.state_dict()),
        lambda m: list(m.state_dict(prefix="p.")),
        lambda m: len(list(m.parameters())),
        lambda m: tuple(next(m.parameters()).shape),
        lambda m: len(list(m.buffers())),
        lambda m: sorted(m._parameters),
        lambda m: sorted(m._modules),
        lambda m: tuple(m.get_parameter("seq.0.weight").shape),
        lambda m: type(m.get_submodule("seq.1")).__name__,
        lambda m: tuple(m.get_buffer("mean").shape),
        lambda m: m.get_submodule("") is m,
        lambda m: m.bias is None,
        lambda m: [p.requires_grad for p in m.parameters()],
        lambda m: m.eval().training,
        lambda m: [k.training for k in m.train().modules()],
        lambda m: {p.requires_grad for p in m.requires_grad_(False).parameters()},
        lambda m: str(m.double().weight.dtype).rpartition(".")[2],
        lambda m: str(m.half().mean.dtype).rpartition(".")[2],
        lambda m: str(m.bfloat16().seq[0].weight.dtype).rpartition(".")[2],
        lambda m: "weight" in dir(m),
        lambda m: [type(c).__name__ for c in m.seq],
        lambda m: str(m.load_state_dict(m.state_dict())),
    ],
)
def test_queries_have_the_same_results(ask):
    want, got = both(lambda lib: ask(model_of(lib)))
    assert got == want


@pytest.mark.parametrize(
    "do",
    [
        lambda lib, m: setattr(m, "weight", lib.ones(2, 3)),
        lambda lib, m: setattr(m, "first", 3),
        lambda lib, m: setattr(m, "mean", 3),
        lambda lib, m: m.register_buffer("weight", lib.ones(1)),
        lambda lib, m: m.register_buffer("a.b", lib.ones(1)),
        lambda lib, m: m.register_buffer("", lib.ones(1)),
        lambda lib, m: m.register_buffer("other", 3),
        lambda lib, m: m.register_buffer(3, None),
        lambda lib, m: m.register_parameter("mean", None),
        lambda lib, m: m.register_parameter("other", lib.ones(1)),
        lambda lib, m: m.add_module("first", 3),
        lambda lib, m: m.add_module("a.b", lib.nn.ReLU()),
        lambda lib, m: m.add_module("weight", lib.nn.ReLU()),
        lambda lib, m: m.nothing,
        lambda lib, m: m.get_submodule("seq.7"),
        lambda lib, m: m.get_parameter("seq.0.nothing"),
        lambda lib, m: m.get_buffer("weight"),
        lambda lib, m: m.train("yes"),
        lambda lib, m: m.to(lib.int64),
        lambda lib, m: m.load_state_dict({}),
        lambda lib, m: m.load_state_dict([]),
        lambda lib, m: m.get_extra_state(),
        lambda lib, m: lib.nn.ModuleList([lib.nn.ReLU()])[1],
        lambda lib, m: lib.nn.ModuleList(3),
        lambda lib, m: lib.nn.ModuleDict([("a",)]),
        lambda lib, m: lib.nn.Sequential(3),
        lambda lib, m: lib.nn.Sequential() * -1,
        lambda lib, m: lib.nn.Module()(1),
        lambda lib, m: copy.deepcopy(m.weight * 2),
        lambda lib, m: lib.nn.Parameter(lib.ones(2, dtype=lib.int64)),
    ],
)
def test_mistakes_raise_the_same_errors(do):
    def error_of(lib):
        with pytest.raises(Exception) as caught:  # noqa: PT011
            do(lib, model_of(lib))
        return caught.type

    want, got = both(error_of)
    assert issubclass(got, want), (got, want)


def test_attributes_may_be_replaced():
    def program(lib):
        m = model_of(lib)
        m.weight = lib.nn.Parameter(lib.zeros(4))
        m.first = None
        m.mean = lib.ones(3)
        m.plain = lib.ones(2)
        m.act = lib.nn.Linear(1, 1)
        m.fixed = None
        del m.seq
        return list(m.state_dict()), [n for n, _ in m.named_modules()], m.mean.tolist()

    want, got = both(program)
    assert got == want


def run_hooks(lib):
    """Return what hooks of all kinds receive and change."""
    lib.manual_seed(0)
    seen = []
    layer = lib.nn.Linear(2, 2)
    with lib.no_grad():
        layer.weight.copy_(lib.tensor([[1.0, 2.0], [3.0, 4.0]]))
        layer.bias.zero_()
    layer.register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    layer.register_forward_pre_hook(
        lambda m, args, kwargs: seen.append(sorted(kwargs)), with_kwargs=True
    )
    layer.register_forward_hook(lambda m, args, out: out + 1)
    layer.register_forward_hook(
        lambda m, args, out: seen.append(out.detach().tolist()), prepend=True
    )
    layer.register_full_backward_pre_hook(lambda m, grad: (grad[0] * 3,))
    layer.register_full_backward_hook(
        lambda m, into, out: seen.append([into[0].tolist(), out[0].tolist()])
    )
    handle = layer.register_full_backward_hook(lambda m, into, out: (into[0] * 10,))
    x = lib.tensor([[1.0, 1.0]], requires_grad=True)
    out = layer(x)
    out.sum().backward()
    first = out.tolist(), x.grad.tolist(), layer.weight.grad.tolist()
    handle.remove()
    x.grad = None
    layer(x).sum().backward()
    return seen, first, x.grad.tolist()


def test_hooks_see_and_change_the_same():
    want, got = both(run_hooks)
    assert got == want


@pytest.mark.filterwarnings("ignore:Full backward hook")
def test_a_hook_on_a_module_whose_input_needs_no_gradient():
    def program(lib):
        seen = []
        layer = lib.nn.Linear(2, 1, bias=False)
        layer.register_full_backward_hook(lambda m, into, out: seen.append((into, out[0].tolist())))
        layer(lib.ones(1, 2)).sum().backward()
        return seen

    want, got = both(program)
    assert got == want


def test_global_module_hooks():
    def program(lib, module):
        seen = []
        handle = module.register_module_forward_hook(
            lambda m, args, out: seen.append(type(m).__name__)
        )
        model = lib.nn.Sequential(lib.nn.Linear(2, 1), lib.nn.ReLU())
        model(lib.ones(1, 2))
        handle.remove()
        model(lib.ones(1, 2))
        return seen

    assert program(gt, gt.nn.hooks) == program(torch, torch.nn.modules.module)


@BOTH
def test_pickles_and_copies(lib):
    m = model_of(lib)
    for other in (copy.deepcopy(m), copy.deepcopy(copy.deepcopy(m))):
        assert list(other.state_dict()) == list(m.state_dict())
        assert other.again is other.first
        assert other.first.weight is not m.first.weight
        assert isinstance(other.fixed, lib.nn.Parameter) and not other.fixed.requires_grad
        with lib.no_grad():
            other.first.weight.zero_()
        assert m.first.weight.abs().sum().item() > 0


def test_pickles_of_tensors_and_modules():
    model = gt.nn.Sequential(gt.nn.Linear(3, 2), gt.nn.ReLU())
    model[0].bias.requires_grad_(False)
    other = pickle.loads(pickle.dumps(model))
    x = gt.randn(4, 3)
    assert other(x).tolist() == model(x).tolist()
    assert [p.requires_grad for p in other.parameters()] == [True, False]
    assert all(isinstance(p, gt.nn.Parameter) for p in other.parameters())
    for dtype in ("bfloat16", "float16", "int64", "bool", "complex64", "float64"):
        tensor = gt.tensor([[0, 1, 1]]).to(dtype)
        again = pickle.loads(pickle.dumps(tensor))
        assert again.dtype == tensor.dtype and again.tolist() == tensor.tolist()
        assert again.shape == tensor.shape
    assert pickle.loads(pickle.dumps(gt.zeros(0, 3))).shape == (0, 3)
    with pytest.raises(RuntimeError, match="history"):
        pickle.dumps(model(x))


@BOTH
def test_loading_a_state(lib):
    m, other = model_of(lib), model_of(lib)
    state = {name: value.clone() + 1 for name, value in m.state_dict().items()}
    weight = other.weight
    result = other.load_state_dict(state)
    assert result.missing_keys == [] and result.unexpected_keys == []
    assert other.weight is weight
    assert other.weight.tolist() == state["weight"].tolist()
    other.load_state_dict(state, assign=True)
    assert other.weight is not weight and isinstance(other.weight, lib.nn.Parameter)
    del state["mean"]
    state["more"] = lib.ones(1)
    result = other.load_state_dict(state, strict=False)
    assert result.missing_keys == ["mean"] and result.unexpected_keys == ["more"]


@BOTH
def test_state_hooks_and_extra_state(lib):
    class Counted(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = lib.nn.Parameter(lib.ones(2))
            self.count = 3

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    m = Counted()
    m.register_state_dict_pre_hook(lambda module, prefix, keep: setattr(module, "count", 5))
    m.register_state_dict_post_hook(
        lambda module, state, prefix, local: state.__setitem__("old", state["weight"])
    )
    state = m.state_dict()
    assert list(state) == ["weight", "_extra_state", "old"]

    def renamed(module, state, prefix, *_):
        state["weight"] = state.pop("old")

    other = Counted()
    other.register_load_state_dict_pre_hook(renamed)
    found = []
    other.register_load_state_dict_post_hook(lambda module, keys: found.append(tuple(keys)))
    other.load_state_dict(state)
    assert other.count == 5 and found == [([], [])]


def test_states_of_pytorch_load():
    theirs, ours = model_of(torch), model_of(gt)
    ours.load_state_dict(theirs.state_dict())
    for (name, want), got in zip(
        theirs.state_dict().items(), ours.state_dict().values(), strict=True
    ):
        np.testing.assert_array_equal(got.numpy(), want.numpy(), err_msg=name)
    half = theirs.bfloat16()
    ours.load_state_dict(half.state_dict())
    assert ours.weight.dtype == gt.float32


@pytest.mark.parametrize(
    "make",
    [
        model_of,
        lambda lib: lib.nn.ModuleList([lib.nn.ReLU(), lib.nn.ReLU(), lib.nn.Tanh()]),
        lambda lib: lib.nn.ModuleDict({"a": lib.nn.ReLU()}),
        lambda lib: lib.nn.ParameterList([lib.ones(2, 3), 3]),
        lambda lib: lib.nn.ParameterDict({"a": lib.ones(2, 3)}),
        lambda lib: lib.nn.Sequential(lib.nn.Sequential(lib.nn.ReLU()), lib.nn.ReLU()) * 2,
    ],
)
def test_modules_have_the_same_repr(make):
    want, got = both(lambda lib: repr(make(lib)))
    assert got.replace("gt.", "torch.") == want


def containers(lib):
    """Return the contents of containers after changes of all kinds."""
    kinds = [lib.nn.ReLU, lib.nn.Tanh, lib.nn.Sigmoid, lib.nn.Identity]
    told = []
    for make in (lambda m: lib.nn.Sequential(*m), lib.nn.ModuleList):
        c = make([kind() for kind in kinds])
        c.insert(1, lib.nn.GELU())
        c.append(lib.nn.SiLU())
        c.extend([lib.nn.ReLU()])
        c[-1] = lib.nn.Softplus()
        del c[0]
        told.append([type(c.pop(2)).__name__, type(c[1:3]).__name__, len(c[1:3])])
        c += make([lib.nn.ReLU()])
        told.append([f"{n}:{type(m).__name__}" for n, m in c.named_children()])
    d = lib.nn.ModuleDict({"a": lib.nn.ReLU()})
    d.update([("b", lib.nn.Tanh())])
    d["c"] = lib.nn.Identity()
    told.append([list(d.keys()), "a" in d, type(d.pop("a")).__name__, len(d), list(d)])
    p = lib.nn.ParameterList([lib.ones(2)])
    p.append(lib.zeros(1))
    p += [lib.ones(3)]
    p[0] = lib.ones(5)
    told.append([[n for n, _ in p.named_parameters()], len(p), [len(v) for v in p], len(p[1:])])
    e = lib.nn.ParameterDict({"a": lib.ones(2)})
    e["b"] = lib.ones(1)
    e.setdefault("c", lib.ones(4))
    told.append([list(e.keys()), e.get("z"), [n for n, _ in e.named_parameters()]])
    told.append([len(e.pop("a")), list(e), [k for k, _ in e.items()], len(e | e)])
    return told


def test_changed_containers_have_the_same_contents():
    want, got = both(containers)
    assert got == want


def test_buffers_as_attributes():
    def program(lib):
        m = lib.nn.Module()
        m.kept = lib.nn.Buffer(lib.ones(2))
        m.not_kept = lib.nn.Buffer(lib.ones(2), persistent=False)
        return list(m.state_dict()), [n for n, _ in m.named_buffers()]

    want, got = both(program)
    assert got == want


def test_functional_call_replaces_tied_weights():
    def program(lib):
        m = lib.nn.Sequential(lib.nn.Linear(2, 2, bias=False), lib.nn.Linear(2, 2, bias=False))
        m[1].weight = m[0].weight
        x = lib.ones(1, 2)
        return lib.func.functional_call(m, {"0.weight": lib.ones(2, 2)}, (x,)).tolist()

    want, got = both(program)
    assert got == want


def test_a_pickle_through_a_file():
    buffer = io.BytesIO()
    pickle.dump({"x": gt.ones(2), "n": [1, 2]}, buffer)
    buffer.seek(0)
    assert pickle.load(buffer)["x"].tolist() == [1, 1]
