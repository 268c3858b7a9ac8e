"""Values on the device "cluster" compared with the CPU, in cases that are easy to get wrong."""

import random

import gt
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
device = pytest.importorskip("gt.torch")
F = torch.nn.functional
NAN, INF = float("nan"), float("inf")


def on_both(function):
    """Return a function's results on the cluster and on the CPU."""
    found = []
    for where in ("cluster", "cpu"):
        made = function(where)
        made = made if isinstance(made, tuple) else (made,)
        found.append([one.detach().cpu() for one in made])
    return found


def check(function):
    for one, other in zip(*on_both(function), strict=True):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one, other, equal_nan=True)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("targets", [[-100] * 3, [1, -100, 2]])
def test_targets_that_are_ignored(reduction, targets):
    def losses(where):
        x = torch.arange(15.0).reshape(3, 5).to(where).requires_grad_()
        y = x.clone()
        y[:, 0] = -INF
        loss = F.cross_entropy(y, torch.tensor(targets, device=where), reduction=reduction)
        loss.sum().backward()
        return loss, x.grad

    check(losses)


@pytest.mark.parametrize("options", [
    {"cls": "SGD", "momentum": 0.9}, {"cls": "SGD", "momentum": 0.9, "nesterov": True},
    {"cls": "Adam", "amsgrad": True, "weight_decay": 0.1}, {"cls": "AdamW", "maximize": True},
], ids=str)  # fmt: skip
def test_fused_steps_after_an_overflow(options):
    options = dict(options)
    make = getattr(torch.optim, options.pop("cls"))

    def weights(where):
        weight = torch.nn.Parameter(torch.ones(3, device=where))
        optimizer = make([weight], lr=0.1, fused=True, **options)
        scaler = torch.amp.GradScaler(where, init_scale=4.0)
        for factor in (1.0, INF, 2.0, -1.0):
            optimizer.zero_grad()
            scaler.scale((weight * factor).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
        return weight, weight.grad

    check(weights)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.int64])
def test_ranges(dtype):
    limits = (0, 1, 0.1) if dtype.is_floating_point else (0.5, 3)
    check(lambda where: torch.arange(*limits, dtype=dtype, device=where))
    check(lambda where: torch.arange(10, 2, -3, dtype=dtype, device=where))
    check(lambda where: torch.linspace(0, 10, 4, dtype=dtype, device=where))
    check(lambda where: torch.logspace(0, 2, 3, dtype=dtype, device=where))


@pytest.mark.filterwarnings("ignore:torch.range")
def test_range():
    check(lambda where: torch.range(1, 4, 0.5, device=where))


def test_the_default_dtype():
    def promoted(where):
        whole = torch.arange(1, 4, device=where)
        return whole / 3, whole.exp(), whole * 0.1, (whole > 1) * 0.5, whole.sqrt()

    torch.set_default_dtype(torch.float64)
    try:
        check(promoted)
    finally:
        torch.set_default_dtype(torch.float32)
    check(promoted)


def test_marks_of_complex_numbers():
    z = torch.tensor([1 + 2j, 3 - 4j]).to("cluster").conj()
    host = z.cpu().resolve_conj()
    assert device.to_torch(device.from_torch(z), "cpu").equal(host)
    assert device.to_torch(device.from_torch(z.imag), "cpu").equal(host.imag)
    assert torch.compile(lambda x: x * 2, backend="gt")(z).cpu().equal(host * 2)

    def products(where):
        a = torch.tensor([[1 + 2j, 3j], [2 - 1j, 1]]).to(where)
        out = torch.empty_like(a)
        torch.mm(a, a, out=out.conj())
        changed = a.clone().conj()
        changed.addmm_(a, a)
        return out, changed.resolve_conj()

    check(products)


def test_strides_in_a_graph():
    def function(x):
        return torch.as_strided(x.t() * 1, (6,), (1,), 0) + 1

    x = torch.arange(6.0, device="cluster").reshape(2, 3)
    assert torch.compile(function, backend="gt")(x).equal(function(x))
    total, _ = torch.compile(lambda x: (x.sum().cpu(), x * 2), backend="gt")(x)
    assert total.device.type == "cpu"


def test_resizing_what_is_seen_otherwise():
    check(lambda where: torch.arange(6.0, device=where).reshape(2, 3).t().resize_(6))

    def grown(where):
        return torch.arange(4.0, device=where).resize_(3, 2)[:2]

    check(grown)
    x = torch.arange(4.0, device="cluster")
    y = x.view(2, 2)
    with pytest.raises(RuntimeError, match="several tensors share"):
        x.resize_(8)
    assert y.shape == (2, 2)


def test_tensors_of_gt_are_their_own():
    x = torch.arange(3.0, device="cluster")
    ours = device.from_torch(x)
    ours.add_(1)
    ours[0] = 50
    assert x.tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_random_numbers_stay_below_the_limit(dtype):
    assert (torch.rand(200_000, device="cluster", dtype=dtype) < 1).all()
    drawn = torch.empty(200_000, device="cluster", dtype=dtype).uniform_(-1, 1)
    assert ((drawn >= -1) & (drawn < 1)).all()


def test_whole_numbers_and_factors():
    def made(where):
        ones = torch.ones(2, 2, dtype=torch.int64, device=where)
        return torch.addmm(ones, ones, ones, alpha=1.5), torch.addcmul(ones, ones, ones, value=1.5)

    check(made)
    ones = torch.ones(2, dtype=torch.int64, device="cluster")
    with pytest.raises(RuntimeError, match="alpha must not be a floating point"):
        torch.add(ones, ones, alpha=1.5)


@pytest.mark.parametrize("function", [
    F.relu, F.relu6, F.hardtanh, F.elu, F.celu, F.selu, F.leaky_relu,
    lambda x: torch.logit(x, 1e-3), lambda x: F.threshold(x, 0.0, 1.0),
])  # fmt: skip
def test_gradients_where_there_is_no_number(function):
    def gradient(where):
        x = torch.tensor([NAN, 0.3, -0.5], device=where, requires_grad=True)
        function(x).backward(torch.ones(3, device=where))
        return x.grad

    check(gradient)


def test_a_generator_decides():
    def drawn():
        generator = torch.Generator("cluster").manual_seed(3)
        noise, x = torch.empty(8, device="cluster"), -torch.ones(8, device="cluster")
        return torch.ops.aten.rrelu_with_noise(x, noise, 0.1, 0.3, True, generator)

    assert drawn().equal(drawn())


@pytest.mark.parametrize("call", [
    lambda x: torch.mm(x[None], x), lambda x: torch.bmm(x[None], x.expand(2, 3, 3)),
    lambda x: torch.addmm(x[None], x, x), lambda x: torch.native_dropout(x, 1.5, True),
    lambda x: torch.empty_strided((2, 3), (1,), device="cluster"),
    lambda x: torch.empty_strided((2,), (-1,), device="cluster"),
    lambda x: torch.empty(2**41, dtype=torch.uint8, device="cluster"),
])  # fmt: skip
def test_what_pytorch_refuses(call):
    with pytest.raises(RuntimeError):
        call(torch.ones(3, 3, device="cluster"))


def test_an_encoder_with_padding():
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    x = torch.randn(2, 5, 8)
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    with torch.no_grad():
        expected = encoder(x, src_key_padding_mask=padding)
        nested = torch.nn.TransformerEncoder(layer, 2)
        nested.load_state_dict(encoder.state_dict())
        moved = (of.to("cluster") for of in (x, padding))
        nested = nested.eval().to("cluster")
        found = nested(next(moved), src_key_padding_mask=next(moved)).cpu()
    assert torch.allclose(found[~padding], expected[~padding], atol=1e-5)
    attention = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval().to("cluster")
    with torch.no_grad():
        x = x.to("cluster")
        assert attention(x, x, x, need_weights=False)[1] is None


def test_process_groups():
    with pytest.raises((RuntimeError, ValueError), match="one process uses all workers"):
        torch.distributed.init_process_group("gloo")


def test_default_dtypes_are_one():
    assert gt.get_default_dtype() == gt.float32


def test_views_of_views():
    """Chains of views have the CPU's sizes, strides, elements and errors."""
    host = torch.arange(24.0)
    here = host.to("cluster")

    def chain(tensor, random):
        tensor = tensor.view(random.choice([(24,), (2, 12), (2, 3, 4), (1, 24, 1), (3, 2, 2, 2)]))
        for _ in range(random.randrange(4)):
            axis, rank = random.randrange(max(tensor.dim(), 1)), tensor.dim()
            match random.randrange(6):
                case 0:
                    tensor = tensor.permute(random.sample(range(rank), rank))
                case 1:
                    tensor = tensor.unsqueeze(axis)
                case 2:
                    tensor = tensor.expand(random.randrange(3), *tensor.shape)
                case 3 if rank:
                    tensor = tensor.narrow(axis, tensor.shape[axis] // 2, tensor.shape[axis] // 2)
                case 4 if rank and tensor.shape[axis]:
                    tensor = tensor.select(axis, 0)
                case 5 if rank:
                    tensor = tensor[(slice(None),) * axis + (slice(None, None, 2),)]
        count = tensor.numel()
        first = random.choice([of for of in range(1, count + 1) if count % of == 0] or [1])
        sizes = [[-1], [first, -1], [first, count // first], [*tensor.shape, 1], [5, -1], [-1, -2]]
        return tensor.view(random.choice(sizes))

    def seen(tensor, seed):
        try:
            view = chain(tensor, random.Random(seed))
        except RuntimeError as error:
            return str(error)
        return tuple(view.shape), view.stride(), view.storage_offset(), view.tolist()

    for seed in range(500):
        assert seen(here, seed) == seen(host, seed), seed
    assert (
        here.as_strided((2, 2), (1, 3), 2).tolist() == host.as_strided((2, 2), (1, 3), 2).tolist()
    )
    for sizes, strides, offset in (((100,), (1,), 0), ((2,), (-1,), 4), ((2, 2), (1,), 0)):
        with pytest.raises(RuntimeError):
            host.as_strided(sizes, strides, offset)
        with pytest.raises(RuntimeError):
            here.as_strided(sizes, strides, offset)


def test_a_scale_stays_finite():
    scaler = torch.amp.GradScaler("cluster", growth_interval=1)
    weight = torch.ones(2, device="cluster", requires_grad=True)
    optimizer = torch.optim.SGD([weight], 0.0)
    for _ in range(150):
        optimizer.zero_grad()
        scaler.scale((weight * 1e-3).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert scaler.get_scale() == 2.0**127


# PyTorch itself uses functions that it deprecates.
@pytest.mark.filterwarnings("ignore:`torch.jit:FutureWarning")
@pytest.mark.parametrize("source", ["cpu", "cluster"])
@pytest.mark.parametrize("target", ["cpu", "cluster"])
def test_tangents_are_copied_between_devices(source, target):
    from torch.autograd import forward_ad

    with forward_ad.dual_level():
        tangent = torch.full((3,), 2.0, device=source)
        x = forward_ad.make_dual(torch.ones(3, device=source), tangent)
        y = torch.zeros(3, device=target)
        y.copy_(x * 3)
        for of in (y, (x * 3).to(target)):
            assert forward_ad.unpack_dual(of).tangent.tolist() == [6.0] * 3
