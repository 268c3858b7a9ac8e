"""Everyday use of tensors."""

import copy
import io
import math
import pickle

import numpy as np

from habits.common import waves


def habit_view_as_rows(torch):
    x = torch.arange(12.0)
    assert x.view(-1, 4).shape == (3, 4) and x.view(3, -1).shape == torch.Size([3, 4])
    assert x.view(3, 4).view(x.size()).equal(x) and x.view(2, 6).view_as(x).dim() == 1
    assert x.reshape(2, -1, 3).shape[-1] == 3 and x.view(3, 4).flatten().size(0) == 12


def habit_sizes_are_tuples(torch):
    x = torch.zeros(2, 3, 4)
    batch, length, width = x.shape
    b, t, c = x.size()
    assert (batch, length, width) == (b, t, c) == (2, 3, 4)
    assert x.size(-1) == x.shape[-1] == 4 and x.ndim == x.dim() == 3
    assert x.shape[:2] == (2, 3) and x.shape.numel() == x.numel() == x.nelement() == 24
    assert torch.zeros(*x.shape[:-1], 5).shape == (2, 3, 5) and len(x) == 2
    assert isinstance(x.shape, torch.Size) and isinstance(x.shape, tuple)


def habit_numbers_come_out(torch):
    x = torch.tensor([[1.5, 2.5]])
    assert x.sum().item() == 4.0 and float(x.mean()) == 2.0 and int(x.argmax()) == 1
    assert f"{x.mean().item():.2f}" == f"{x.mean():.2f}" == "2.00"
    assert x.tolist() == [[1.5, 2.5]] and x[0, 1].item() == 2.5
    assert round(x.max().item(), 1) == 2.5 and math.isclose(math.sqrt(x.sum()), 2.0)


def habit_arrays_come_out(torch):
    x = torch.ones(2, 3, requires_grad=True)
    assert x.detach().cpu().numpy().sum() == 6 and x.data.numpy().dtype == np.float32
    assert np.asarray(x.detach()).shape == (2, 3) and np.array(x.tolist()).ndim == 2
    assert torch.from_numpy(np.arange(3)).dtype == torch.int64
    assert torch.tensor(np.ones(2)).dtype == torch.as_tensor(np.ones(2)).dtype == torch.float64
    assert torch.from_numpy(np.ones((2, 2))).float().dtype == torch.float32


def habit_tensors_in_conditions(torch):
    x = torch.tensor([0.0, 1.0])
    assert x.any() and not x.all() and (x > 0.5).any()
    if (x == 0).all() or torch.isnan(x).any() or not torch.isfinite(x).all():
        raise AssertionError
    assert bool(x[1]) and not x[0] and (x.sum() > 0) and x.max() < 2
    assert torch.is_tensor(x) and isinstance(x, torch.Tensor) and not torch.is_tensor(1.0)
    assert torch.equal(x, x.clone()) and torch.allclose(x, x + 1e-9)


def habit_loops_over_rows(torch):
    x = torch.arange(6.0).view(2, 3)
    assert [row.sum().item() for row in x] == [3.0, 12.0]
    first, second = x
    assert [v.item() for v in second] == [3, 4, 5] and first.shape == (3,)
    for number, (a, b, c) in enumerate(x):
        assert (a + b + c).item() == [3, 12][number]
    assert list(zip(x, x, strict=True))[1][0].tolist() == [3, 4, 5]
    assert max(x[:, 0]).item() == 3 and sum(x).tolist() == [3, 5, 7]


def habit_indices_of_all_kinds(torch):
    x = torch.arange(24).view(2, 3, 4)
    assert x[:, -1].shape == (2, 4) and x[..., 0].shape == (2, 3) and x[:, None].ndim == 4
    assert x[0, 1:, ::2].tolist() == [[4, 6], [8, 10]] and x[-1, -1, -1] == 23
    assert x[[0, 1], [1, 2]].shape == (2, 4) and x[x > 20].tolist() == [21, 22, 23]
    assert x[torch.arange(2), :, torch.tensor([0, 3], dtype=torch.long)].shape == (2, 3)
    assert x[torch.randperm(2)].sum() == x.sum() and x[:, :, np.array([1, 2])].shape == (2, 3, 2)
    chosen = torch.zeros(2, dtype=torch.bool)
    chosen[1] = True
    assert x[chosen].shape == (1, 3, 4)


def habit_writing_to_places(torch):
    x = torch.zeros(3, 3)
    x[0] = 1
    x[:, 1] = torch.tensor([5.0, 6.0, 7.0])
    x[x == 0] = -1
    x[2, 2] += 10
    x[[0, 1], [0, 0]] = torch.tensor([8.0, 9.0])
    x[1][2] = 4
    return x.tolist()


def habit_forms_in_place(torch):
    x = torch.ones(3)
    y = x
    x.add_(1).mul_(2).sub_(0.5).div_(2).clamp_(max=1.5)
    x += 1
    x *= 2
    x.zero_().fill_(3).copy_(torch.tensor([1.0, 2.0, 3.0]))
    assert y is x and y.tolist() == [1, 2, 3]
    x.data.mul_(2)
    assert y.tolist() == [2, 4, 6] and x.masked_fill_(x > 5, 0).tolist() == [2, 4, 0]
    assert x.uniform_(0, 1).max() <= 1 and x.normal_().shape == (3,) and x.exponential_().min() >= 0


def habit_views_share_memory(torch):
    x = torch.zeros(2, 3)
    x.view(-1)[0] = 1
    x[1].fill_(2)
    x.t()[2].add_(5)
    x.data[0, 1] = 9
    x.detach()[1, 0] = 8
    return x.tolist()


def habit_dtypes_by_method(torch):
    x = torch.tensor([1.7, -2.3])
    assert x.long().tolist() == [1, -2] and x.int().dtype == torch.int32
    assert x.double().dtype == torch.float64 and x.half().dtype == torch.float16
    assert x.bfloat16().dtype == torch.bfloat16 and x.bool().all()
    assert x.to(torch.float64).dtype == x.type(torch.float64).dtype == torch.double
    assert x.type_as(torch.zeros(1, dtype=torch.int32)).dtype == torch.int
    assert (x > 0).float().tolist() == [1, 0] and x.to(x.long()).dtype == torch.int64
    assert torch.float32.is_floating_point and not torch.long.is_floating_point
    assert torch.finfo(torch.float32).max > 1e38 and torch.iinfo(torch.int8).max == 127
    assert torch.get_default_dtype() == torch.float32 and x.element_size() == 4


def habit_devices_are_said(torch):
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    x = torch.zeros(2, device=device)
    y = torch.ones(2).to(device).to(x.device, non_blocking=True)
    assert x.device == y.device and (x + y.to("cpu")).cpu().sum() == 2
    assert torch.device("cuda:0").type == "cuda" and torch.device("cuda", 1).index == 1
    assert str(torch.device("cuda:0")) == "cuda:0" and torch.device("cpu") == torch.device("cpu")
    assert y.to(device=device, dtype=torch.float64).dtype == torch.float64
    assert torch.zeros_like(x, device=x.device).tolist() == [0, 0] and not x.is_cuda


def habit_creating_alike(torch):
    x = torch.zeros(2, 3, dtype=torch.float64)
    assert x.new_zeros(4).dtype == x.new_ones(2, 2).dtype == x.new_full((1,), 7).dtype == x.dtype
    assert x.new_tensor([1.0]).dtype == torch.float64 and x.new_empty(3).shape == (3,)
    assert torch.ones_like(x).sum() == 6 and torch.full_like(x, 2).mean() == 2
    assert torch.randn_like(x).shape == torch.rand_like(x).shape == torch.empty_like(x).shape
    assert torch.full((2,), 3.0).tolist() == [3, 3] and torch.eye(2).trace() == 2
    assert torch.linspace(0, 1, 5)[1] == 0.25 and torch.arange(1, 7, 2).tolist() == [1, 3, 5]
    assert torch.zeros((2, 3)).shape == torch.zeros([2, 3]).shape == torch.zeros(x.size()).shape


def habit_joining_and_parting(torch):
    x = torch.arange(6.0).view(2, 3)
    assert torch.cat([x, x], dim=0).shape == (4, 3) and torch.cat((x, x), -1).shape == (2, 6)
    assert torch.stack([x, x], dim=1).shape == (2, 2, 3) and torch.vstack([x, x]).shape == (4, 3)
    left, right = x.chunk(2, dim=0)
    assert left.squeeze(0).tolist() == [0, 1, 2] and right.shape == (1, 3)
    a, b = x.split([1, 2], dim=1)
    assert a.shape == (2, 1) and b.shape == (2, 2) and len(x.split(1)) == 2
    assert [t.tolist() for t in x.unbind(0)] == x.tolist() and torch.unbind(x)[1][0] == 3
    return torch.cat([x.unsqueeze(0), x[None]]).transpose(0, 1).flatten(1).tolist()


def habit_axes_move(torch):
    x = torch.zeros(2, 3, 4, 5)
    assert x.permute(0, 2, 3, 1).shape == (2, 4, 5, 3) and x.transpose(1, 2).shape == (2, 4, 3, 5)
    assert x.permute(0, 2, 3, 1).contiguous().view(2, -1, 3).shape == (2, 20, 3)
    assert x[0, 0].T.shape == x[0, 0].t().shape == (5, 4) and x.mT.shape == (2, 3, 5, 4)
    assert x.unsqueeze(-1).squeeze(-1).shape == x.shape and x[:1].squeeze().shape == (3, 4, 5)
    assert (
        x[:, :1].expand(-1, 6, -1, -1).shape == (2, 6, 4, 5) and x[0, 0].repeat(2, 1).shape[0] == 8
    )
    assert torch.zeros(1, 3).expand(4, -1).shape == torch.zeros(3).expand(4, 3).shape == (4, 3)
    assert x.movedim(1, -1).shape == (2, 4, 5, 3) and x.flatten(start_dim=1).shape == (2, 60)
    assert torch.zeros(6).unflatten(0, (2, 3)).shape == (2, 3) and x.is_contiguous()


def habit_results_have_names(torch):
    x = torch.tensor([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]])
    values, indices = x.max(dim=1)
    assert values.tolist() == [3, 6] and indices.tolist() == [0, 1]
    assert x.max(1).values.equal(values) and x.min(1)[1].tolist() == [1, 0]
    assert (
        x.topk(2).indices.tolist() == [[0, 2], [1, 2]] and x.sort(1, descending=True)[0][0, 0] == 3
    )
    assert torch.max(x, 1)[1].equal(x.argmax(-1)) and torch.topk(x, k=1, dim=1)[0].shape == (2, 1)
    assert x.argmax(dim=1, keepdim=True).shape == (2, 1) and x.argsort(dim=-1)[0].tolist() == [
        1,
        2,
        0,
    ]
    assert torch.unique(torch.tensor([2.0, 1.0, 2.0])).tolist() == [1, 2] and x.median() == 3
    assert torch.max(x, torch.tensor(3.5))[0, 0] == 3.5 and x.amax((0, 1)) == 6


def habit_accuracy(torch):
    logits, labels = waves(torch, 6, 3), torch.arange(6) % 3
    _, predicted = torch.max(logits.data, 1)
    correct = (predicted == labels).sum().item()
    assert correct == logits.argmax(1).eq(labels).sum().item() and isinstance(correct, int)
    _, top = logits.topk(2, 1, True, True)
    hits = top.t().eq(labels.view(1, -1).expand_as(top.t()))
    first = hits[:1].reshape(-1).float().sum(0, keepdim=True).mul_(100.0 / labels.size(0))
    assert abs(first.item() - 100 * correct / len(labels)) < 1e-4
    return correct, hits.float().sum().item(), (predicted == labels).float().mean().item()


def habit_masks(torch):
    scores = waves(torch, 3, 3)
    mask = torch.tril(torch.ones(3, 3))
    causal = scores.masked_fill(mask == 0, float("-inf")).softmax(dim=-1)
    assert causal[0].tolist() == [1, 0, 0] and torch.triu(mask, diagonal=1).sum() == 0
    kept = torch.where(scores > 0, scores, torch.zeros_like(scores))
    assert kept.equal(scores.clamp(min=0)) and torch.where(mask > 0, 1.0, 0.0).equal(mask)
    assert (~mask.bool()).sum() == 3 and scores[mask.bool()].shape == (6,)
    assert torch.nonzero(mask).shape == (6, 2) and mask.nonzero(as_tuple=True)[0].shape == (6,)
    assert scores.masked_select(mask > 0).numel() == 6 and torch.logical_not(mask).any()
    return causal.tolist()


def habit_picking_by_index(torch):
    logits, labels = waves(torch, 4, 3), torch.tensor([0, 2, 1, 1], dtype=torch.long)
    picked = logits.gather(1, labels.unsqueeze(1)).squeeze(1)
    assert picked.equal(logits[list(range(4)), labels]) and picked.equal(
        logits[torch.arange(4), labels]
    )
    hot = torch.zeros(4, 3).scatter_(1, labels.unsqueeze(1), 1)
    assert hot.equal(torch.nn.functional.one_hot(labels, 3).float())
    assert torch.eye(3)[labels].equal(hot) and logits.index_select(1, labels).shape == (4, 4)
    counts = torch.zeros(3).index_add_(0, labels, torch.ones(4))
    assert counts.tolist() == torch.bincount(labels, minlength=3).tolist() == [1, 2, 1]
    return picked.tolist()


def habit_products(torch):
    a, b = waves(torch, 2, 3, 4), waves(torch, 2, 4, 5)
    assert torch.allclose(a @ b, torch.bmm(a, b)) and (a @ b).shape == torch.matmul(a, b).shape
    assert torch.allclose(torch.einsum("bij,bjk->bik", a, b), a.matmul(b), atol=1e-6)
    assert (a[0] @ b[0, :, 0]).shape == a[0].mv(b[0, :, 0]).shape == (3,)
    assert torch.allclose(torch.dot(a[0, 0], a[0, 0]), (a[0, 0] ** 2).sum()) and a[0].mm(
        b[0]
    ).shape == (3, 5)
    assert (
        torch.outer(a[0, 0], a[0, 1]).shape == (4, 4)
        and torch.addmm(torch.zeros(5), a[0], b[0]).ndim
    )
    return (a @ b).tolist()


def habit_statistics(torch):
    x = waves(torch, 4, 5)
    assert x.mean(0, keepdim=True).shape == (1, 5) and x.sum(dim=(0, 1)).shape == ()
    whitened = (x - x.mean(0)) / (x.std(0) + 1e-5)
    assert whitened.std(0).sub(1).abs().max() < 1e-3 and x.var(1, unbiased=False).min() > 0
    assert torch.norm(x, dim=1).shape == x.norm(2, 1).shape == (4,) and x.norm().item() > 0
    assert x.cumsum(1)[:, -1].sub(x.sum(1)).abs().max() < 1e-5 and x.prod(1).shape == (4,)
    return [x.mean().item(), x.std().item(), x.var().item(), x.logsumexp(1).sum().item()]


def habit_random_numbers(torch):
    torch.manual_seed(1)
    first = torch.randn(3)
    torch.manual_seed(1)
    assert first.equal(torch.randn(3)) and torch.rand(2, 3).max() < 1
    assert sorted(torch.randperm(5).tolist()) == [0, 1, 2, 3, 4]
    assert (
        torch.randint(0, 10, (4,)).dtype == torch.int64 and torch.randint(3, size=(2, 2)).max() < 3
    )
    assert (
        torch.normal(0.0, 1.0, size=(2,)).shape == torch.normal(torch.zeros(2), torch.ones(2)).shape
    )
    assert torch.bernoulli(torch.full((4,), 1.0)).sum() == 4 and torch.initial_seed() == 1
    state = torch.get_rng_state()
    drawn = torch.rand(2)
    torch.set_rng_state(state)
    assert drawn.equal(torch.rand(2)) and torch.cuda.manual_seed_all(0) is None


def habit_generators(torch):
    g = torch.Generator().manual_seed(2147483647)
    first = torch.randint(0, 27, (5,), generator=g)
    g = torch.Generator(device="cpu")
    g.manual_seed(2147483647)
    assert first.equal(torch.randint(0, 27, (5,), generator=g)) and g.initial_seed() == 2147483647
    p = torch.tensor([0.0, 1.0, 0.0])
    assert torch.multinomial(p, num_samples=4, replacement=True, generator=g).tolist() == [1] * 4
    assert torch.randn((2, 3), generator=g).shape == torch.randperm(6, generator=g).view(2, 3).shape


def habit_copies_and_pickles(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    for again in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert again.equal(x) and again.requires_grad and again.is_leaf
    kept = copy.deepcopy({"x": [x.detach()], "n": 1})
    with torch.no_grad():
        x.add_(1)
    assert kept["x"][0].tolist() == [1, 2] and x.detach().clone().tolist() == [2, 3]


def habit_saving_to_files(torch):
    file = io.BytesIO()
    torch.save({"epoch": 3, "model": {"w": torch.ones(2)}, "losses": [0.5]}, file)
    file.seek(0)
    checkpoint = torch.load(file, map_location="cpu", weights_only=True)
    assert checkpoint["epoch"] == 3 and checkpoint["model"]["w"].tolist() == [1, 1]


def habit_printing(torch):
    assert str(torch.tensor([1.0])).startswith("tensor([1.")
    assert "requires_grad=True" in repr(torch.ones(1, requires_grad=True))
    assert "3" in f"{torch.tensor(3.0):.1f}" and f"{torch.tensor(0.123456).item():.4f}" == "0.1235"


def habit_numbers_and_tensors_mix(torch):
    x = torch.tensor([1.0, 2.0])
    assert (2 - x).tolist() == [1, 0] and (1 / x).tolist() == [1, 0.5] and (2**x).tolist() == [2, 4]
    assert (
        (x * np.float32(2)).tolist() == [2, 4]
        and (-x).abs().sum() == 3
        and (x // 2).tolist() == [0, 1]
    )
    assert (torch.arange(3) / 2).dtype == torch.float32 and (
        torch.arange(3) * 2.0
    ).dtype == torch.float32
    assert (torch.arange(5) % 2).tolist() == [0, 1, 0, 1, 0] and (x**2).sqrt().tolist() == [1, 2]
    assert (x > 1).sum().dtype == torch.int64 and (x.double() * x).dtype == torch.float64
    assert torch.tensor(3.0) == 3 and torch.maximum(x, torch.tensor(1.5)).tolist() == [1.5, 2]
    assert torch.arange(3).float().mean() == 1 and torch.tensor(True).item() is True


def habit_elementwise_functions(torch):
    x = waves(torch, 5)
    pairs = [
        (torch.exp(x), x.exp()),
        (torch.tanh(x), x.tanh()),
        (x.abs().log(), torch.log(x.abs())),
    ]
    assert all(torch.equal(one, other) for one, other in pairs)
    assert x.clamp(-0.5, 0.5).abs().max() == 0.5 and x.clip(min=0).min() >= 0
    assert x.sign().abs().sum() >= 4 and x.round().dtype == x.floor().dtype == torch.float32
    assert torch.sigmoid(x).add(torch.sigmoid(-x)).sub(1).abs().max() < 1e-6
    return [
        torch.erf(x).sum().item(),
        x.sin().sum().item(),
        x.pow(2).sum().item(),
        x.rsqrt().nan_to_num(0).sum().item(),
    ]


def habit_tensors_are_keys(torch):
    x, y = torch.ones(1), torch.ones(1)
    seen = {x: "x", y: "y"}
    assert seen[x] == "x" and len(seen) == 2 and x in seen
    assert len({id(p) for p in (x, y)}) == 2 and x is not y


def habit_global_switches(torch):
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.set_float32_matmul_precision("high")
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_printoptions(profile="default")
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    assert torch.cuda.device_count() >= 0 and torch.get_num_threads() >= 1
    assert isinstance(torch.__version__, str) and torch.backends.mps.is_available() in (True, False)
