"""Gradients of whole programs, layers, losses and optimizers beside PyTorch's."""

import gt
import pytest
from pytorch import array, check, draw, to_gt, torch

functional = torch.nn.functional


def mlp(x, w1, w2):
    hidden = (x @ w1).relu()
    logits = hidden @ w2
    return -(logits.log_softmax(1)[:, :2] * 0.5).sum()


def attention(q, k, v):
    scores = q @ k.mT * 0.5
    heads = scores.softmax(-1) @ v
    return (heads * heads).mean() + heads.reshape(-1)[::3].sum()


def mixed_shapes(x, y):
    a = x.transpose(0, 1) * y + y / (x.mT.exp() + 1)
    return (a[1:, ::2] ** 2).sum() + a.amax(0).sum() + (a.cumsum(1) * a).mean()


def extremes(x, y):
    return x.maximum(y).sum() + x.minimum(y.mT).prod() + x.clamp(-1, 1).std() + x.abs().max()


def used_twice(x, y):
    z = x * y
    return (z * z + z.sin() * x).sum() + z.logsumexp(0).sum() - z.prod(1).sum()


PROGRAMS = {
    mlp: [(6, 5), (5, 7), (7, 3)],
    attention: [(2, 4, 5), (2, 4, 5), (2, 4, 5)],
    mixed_shapes: [(4, 3), (1, 4)],
    extremes: [(3, 3), (3, 3)],
    used_twice: [(3, 4), (3, 1)],
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_gradients_of_programs(program):
    for dtype, scale in (("float64", 10), ("float32", 30)):
        theirs = [
            draw(seed, *shape, dtype=dtype).requires_grad_()
            for seed, shape in enumerate(PROGRAMS[program])
        ]
        ours = to_gt(theirs)
        want, got = program(*theirs), program(*ours)
        check(got, want, program.__name__, scale)
        want.backward()
        got.backward()
        for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            check(mine.grad, other.grad, (program.__name__, dtype, number), scale)


@pytest.mark.parametrize("affine", ["weight and bias", "weight", "bias", ""])
def test_gradients_of_layer_norm(affine):
    """Gradients of first and second order."""
    x, gain, bias = (draw(n, *s, dtype="float64") for n, s in enumerate([(4, 2, 6), (6,), (6,)]))
    theirs = [x, gain if "weight" in affine else None, bias if "bias" in affine else None]
    ours = [None if t is None else to_gt(t).requires_grad_() for t in theirs]
    theirs = [None if t is None else t.requires_grad_() for t in theirs]

    def gradients(lib, x, weight, bias):
        leaves = [t for t in (x, weight, bias) if t is not None and t.requires_grad]
        y = lib.nn.functional.layer_norm(x, (6,), weight, bias, 1e-3)
        first = lib.autograd.grad(y.tanh().sum(), leaves, create_graph=True)
        return [*first, *lib.autograd.grad(sum((g * g).sum() for g in first), leaves)]

    if affine == "bias":  # PyTorch has no second gradients without a weight.
        theirs[1] = torch.ones(6, dtype=torch.float64)
    expected = gradients(torch, *theirs)
    for mine, other in zip(gradients(gt, *ours), expected, strict=True):
        check(mine, other, ("layer_norm", affine), 100)


#: Ties, zeros and extremes, where gradient rules are easily wrong.
EDGES = [
    ("abs", [0.0, -0.0, 1.0, -1.0]),
    ("relu", [0.0, -0.0, 1.0, -1.0]),
    ("sign", [0.0, 2.0]),
    ("sqrt", [0.0, 4.0]),
    ("prod", [0.0, 2.0, 3.0]),
    ("prod", [0.0, 0.0, 3.0]),
    ("amax", [1.0, 1.0, 0.0]),
    ("max", [1.0, 1.0, 0.0]),
    ("sigmoid", [100.0, -100.0]),
    ("tanh", [100.0, -100.0]),
    ("logsumexp", [1000.0, 1000.0]),
    ("std", [2.0, 2.0, 2.0]),
    ("var", [2.0, 2.0]),
    ("min", [1.0, 1.0, 2.0]),
    ("softplus", [100.0, -100.0, 0.0]),
    ("log1p", [0.0, 1e-20]),
    ("rsqrt", [4.0, 0.25]),
]


@pytest.mark.parametrize(("name", "values"), EDGES)
def test_gradients_at_the_edges(name, values):
    x = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    ours = to_gt(x)
    arguments = (0,) if name == "logsumexp" else ()
    theirs = torch.nn.functional.softplus if name == "softplus" else getattr(torch, name)
    theirs(x, *arguments).sum().backward()
    getattr(ours, name)(*arguments).sum().backward()
    check(ours.grad, x.grad, (name, values))


def test_gradients_of_ties_and_powers():
    for name in ("maximum", "minimum"):
        a, b = (torch.tensor([1.0, 2.0, 3.0], requires_grad=True) for _ in range(2))
        c, d = to_gt(a), to_gt(b)
        getattr(torch, name)(a, b).sum().backward()
        getattr(gt, name)(c, d).sum().backward()
        check((c.grad, d.grad), (a.grad, b.grad), name)
    for base, exponent in [(0.0, 2.0), (0.0, 1.0), (0.0, 0.0), (2.0, 0.0), (-2.0, 3.0), (0.0, 3.0)]:
        a, b = (
            torch.tensor([n], dtype=torch.float64, requires_grad=True) for n in (base, exponent)
        )
        c, d = to_gt(a), to_gt(b)
        (a**b).sum().backward()
        (c**d).sum().backward()
        check(c.grad, a.grad, ("base", base, exponent))
        if base >= 0:
            check(d.grad, b.grad, ("exponent", base, exponent))
    for exponent in (0, 1, 2, 3, 0.5, -1):
        a = torch.tensor([0.0, 2.0], dtype=torch.float64, requires_grad=True)
        c = to_gt(a)
        (a**exponent).sum().backward()
        (c**exponent).sum().backward()
        check(c.grad, a.grad, ("number", exponent))


def test_gradients_of_masked_attention():
    """With -inf in the scores, the gradient of masked scores is zero, and none is NaN."""
    mask = torch.ones(4, 4).triu(1).to(torch.bool)
    scores = draw(1, 4, 4, dtype="float64").requires_grad_()
    weight = draw(2, 4, 4, dtype="float64")
    for name in ("softmax", "log_softmax", "logsumexp"):
        ours = to_gt(scores)
        scores.grad = None
        masked = torch.where(mask, float("-inf"), scores)
        ours_masked = gt.where(to_gt(mask), float("-inf"), ours)
        want, got = getattr(masked, name)(1), getattr(ours_masked, name)(1)
        check(got, want, name)
        used = weight if want.ndim == 2 else weight[0]
        if name == "log_softmax":
            want, got = torch.where(mask, 0.0, want), gt.where(to_gt(mask), 0.0, got)
        (want * used).sum().backward()
        (got * to_gt(used)).sum().backward()
        check(ours.grad, scores.grad, name)


OPTIMIZERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.05, "momentum": 0.9}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "dampening": 0.3}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"lr": 0.05, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.05, "momentum": 0.8, "weight_decay": 0.1, "nesterov": True}),
    ("Adam", {"lr": 0.01}),
    ("Adam", {"lr": 0.01, "betas": (0.8, 0.95), "eps": 1e-6, "weight_decay": 0.1}),
    ("AdamW", {"lr": 0.01}),
    ("AdamW", {"lr": 0.01, "betas": (0.8, 0.95), "weight_decay": 0.2}),
]


def networks():
    """Return a PyTorch network, and a GT network with the same weights."""
    torch.manual_seed(0)
    layers = lambda nn: nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))  # noqa: E731
    theirs, ours = layers(torch.nn), layers(gt.nn)
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


@pytest.mark.parametrize(("kind", "options"), OPTIMIZERS)
def test_twenty_steps(kind, options):
    theirs, ours = networks()
    x, y = draw(1, 16, 6), draw(2, 16, dtype="int64", low=0, high=2)
    gx, gy = to_gt(x), to_gt(y)
    torch_optimizer = getattr(torch.optim, kind)(theirs.parameters(), **options)
    optimizer = getattr(gt.optim, kind)(ours.parameters(), **options)
    for step in range(20):
        want = functional.cross_entropy(theirs(x), y)
        torch_optimizer.zero_grad()
        want.backward()
        torch_optimizer.step()
        got = gt.nn.cross_entropy_loss(ours(gx), gy)
        optimizer.zero_grad()
        got.backward()
        optimizer.step()
        assert abs(got.item() - want.item()) < 1e-5, (kind, options, step)
    for name, parameter in theirs.state_dict().items():
        check(ours.state_dict()[name], parameter, (kind, options, name), 10)


def test_states_go_both_ways():
    theirs, ours = networks()
    assert list(theirs.state_dict()) == list(ours.state_dict())
    with gt.no_grad():
        for parameter in ours.parameters():
            parameter += 1
    theirs.load_state_dict({name: torch.tensor(t.numpy()) for name, t in ours.state_dict().items()})
    x = draw(1, 4, 6)
    check(ours(to_gt(x)), theirs(x), "after the exchange", 5)
    assert (array(theirs[0].weight) == ours[0].weight.detach().numpy()).all()


def test_states_of_optimizers_come_from_pytorch():
    for kind, options in [("SGD", {"lr": 0.1, "momentum": 0.9}), ("AdamW", {"lr": 0.01})]:
        w = draw(1, 4).requires_grad_()
        theirs = getattr(torch.optim, kind)([w], **options)
        (w * w).sum().backward()
        theirs.step()
        ours = to_gt(w)
        optimizer = getattr(gt.optim, kind)([ours])
        optimizer.load_state_dict(theirs.state_dict())
        ours.grad = to_gt(w.grad)
        for _ in range(3):
            theirs.step()
            optimizer.step()
        check(ours, w, kind, 5)


def test_layer_norm_and_embedding():
    x = draw(1, 2, 3, 4)
    for shape, options in [((4,), {}), ((3, 4), {}), ((4,), {"elementwise_affine": False})]:
        theirs, ours = torch.nn.LayerNorm(shape, **options), gt.nn.LayerNorm(shape, **options)
        check(ours(to_gt(x)), theirs(x), ("LayerNorm", shape, options), 10)
    theirs, ours = torch.nn.Embedding(5, 3), gt.nn.Embedding(5, 3)
    ours.load_state_dict(theirs.state_dict())
    index = torch.tensor([[0, 4], [4, 1]])
    want, got = theirs(index), ours(to_gt(index))
    check(got, want)
    (want * want).sum().backward()
    (got * got).sum().backward()
    check(ours.weight.grad, theirs.weight.grad)


def test_linear_takes_any_leading_axes():
    theirs, ours = torch.nn.Linear(3, 4), gt.nn.Linear(3, 4)
    ours.load_state_dict(theirs.state_dict())
    for shape in [(3,), (5, 3), (2, 5, 3), (0, 3)]:
        x = draw(1, *shape)
        check(ours(to_gt(x)), theirs(x), shape)


@pytest.mark.parametrize("name", "ReLU GELU SiLU Sigmoid Tanh Softplus".split())
def test_activation_modules(name):
    x = draw(1, 50, low=-5, high=5).requires_grad_()
    ours = to_gt(x)
    want, got = getattr(torch.nn, name)()(x), getattr(gt.nn, name)()(ours)
    check(got, want, name)
    want.sum().backward()
    got.sum().backward()
    check(ours.grad, x.grad, name)


def test_second_derivatives():
    for name, function in [
        ("cube", lambda x, y: (x * x * x * y).sum()),
        ("matmul", lambda x, y: ((x @ y.mT) ** 2).sum()),
        ("softmax", lambda x, y: (x.softmax(1) * y).sum()),
        ("norm", lambda x, y: (x * x + y * y).sqrt().sum()),
        ("sigmoid", lambda x, y: ((x * y).sigmoid() * x.tanh()).sum()),
        ("indexing", lambda x, y: (x[1:] * x[:-1] * y[0]).exp().mean()),
        ("gelu", lambda x, y: ((x.gelu() if hasattr(x, "gelu") else functional.gelu(x)) * y).sum()),
    ]:
        theirs = [draw(n, 3, 4, dtype="float64", low=-1, high=1).requires_grad_() for n in (0, 1)]
        ours = to_gt(theirs)
        results = []
        for grad, inputs in [(torch.autograd.grad, theirs), (gt.autograd.grad, ours)]:
            first = grad(function(*inputs), inputs, create_graph=True)
            (sum((g * g).sum() for g in first)).backward()
            results.append([tensor.grad for tensor in inputs])
        for mine, other in zip(results[1], results[0], strict=True):
            check(mine, other, name, 100)
