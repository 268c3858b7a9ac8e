"""Calls that replay the instructions of earlier calls return correct results."""

import threading

import gt
import pytest
from processes import embedded_only

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
device = pytest.importorskip("gt.torch")
F = torch.nn.functional


def test_calls_alike():
    """Equivalent calls with other tensors return correct results, also if arguments are equal."""
    torch.manual_seed(0)
    a, b = torch.randn(3, 3), torch.randn(3, 3)
    for first, other, options in (
        (a, b, {}),
        (b, a, {}),
        (a, a, {}),
        (b, b, {}),
        (a, b, {"alpha": 2}),
        (a, b, {"alpha": 3.0}),
        (a.double(), b.double(), {}),
        (a[:2], b, {}),
    ):
        expected = torch.addmm(first[:, :1], first, other, **options)
        here, there = first.to("cluster"), other.to("cluster")
        assert torch.allclose(torch.addmm(here[:, :1], here, there, **options).cpu(), expected)
        if first is other:
            assert torch.allclose(torch.addmm(here[:, :1], here, here, **options).cpu(), expected)
    torch.manual_seed(0)
    inputs = torch.ones(1000, device="cluster")
    drawn = [torch.nn.functional.dropout(inputs, 0.5).cpu() for _ in range(3)]
    assert not drawn[0].equal(drawn[1]) and not drawn[1].equal(drawn[2])
    for labels in ([0, 2, 1], [0, -100, 1], [2, 2, 2]):
        labels = torch.tensor(labels)
        expected = torch.nn.functional.cross_entropy(a, labels)
        found = torch.nn.functional.cross_entropy(a.to("cluster"), labels.to("cluster"))
        assert torch.allclose(found.cpu(), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
@pytest.mark.parametrize("name", ["addcmul", "addcdiv"])
def test_numbers_of_their_own(name, dtype):
    """A factor that varies from call to call, in place and not."""
    if dtype == torch.int64 and name == "addcdiv":
        pytest.skip("has no integers")
    a, b, c = (torch.arange(start, start + 4.0).to(dtype) for start in (1, 2, 3))
    floats = (0.3, 1.0, -0.7, 0.5, 2.0, 0.31, 7, 0.0)
    for value in (1, 2, 3, -1) if dtype == torch.int64 else floats:
        expected = getattr(torch, name)(a, b, c, value=value)
        x, y, z = (of.to("cluster") for of in (a, b, c))
        found = getattr(torch, name)(x, y, z, value=value)
        assert torch.allclose(found.cpu(), expected, rtol=1e-2 if dtype == torch.bfloat16 else 1e-6)
        assert getattr(x, f"{name}_")(y, z, value=value).equal(found)


def test_masks_that_are_used_several_times():
    """The data-dependent length of one mask is not reused for another, even once it is known."""
    torch.manual_seed(0)
    for _ in range(4):
        x = torch.randn(8, 4)
        here, mask = x.to("cluster"), (x[:, 0] > 0).to("cluster")
        for _ in range(3):
            assert here[mask].cpu().equal(x[x[:, 0] > 0])
            assert mask.nonzero().cpu().equal((x[:, 0] > 0).nonzero())
            assert torch.where(mask)[0].cpu().equal(torch.where(x[:, 0] > 0)[0])
    for value in (True, False, True):
        single = torch.tensor(value, device="cluster")
        for _ in range(2):
            assert torch.nonzero(single).shape == torch.nonzero(torch.tensor(value)).shape


def test_numbers_that_are_known_already():
    """A fetched value is not reused for another tensor."""
    for number in (1.0, 2.0, 3.0):
        scale = torch.full((2,), number, device="cluster")
        for item in scale:
            assert item.item() == number
            assert torch.full((2,), item.item(), device="cluster").sum().item() == 2 * number


@pytest.mark.parametrize("random", [F.dropout, torch.bernoulli, torch.rand_like])
def test_random_numbers_are_drawn_anew(random):
    x = torch.full((500,), 0.5, device="cluster")
    first, second, third = (random(x).cpu() for _ in range(3))
    assert not first.equal(second) and not second.equal(third)


def test_default_dtype():
    """A change of the default dtype affects repeated calls."""
    whole = torch.arange(4, device="cluster")
    try:
        for dtype in (torch.float32, torch.float64, torch.float32):
            torch.set_default_dtype(dtype)
            assert torch.softmax(whole.sqrt(), 0).dtype == dtype
            assert whole.float().mean().dtype == torch.float32
    finally:
        torch.set_default_dtype(torch.float32)


def backward_passes():
    """Check the gradients of losses whose backward passes begin in different ways."""
    losses = {
        "select": lambda x: (x[0] * 2).sum(),
        "split": lambda x: torch.split(x, 2, 1)[0].sum(),
        "slice": lambda x: x[:, 1:].sum(),
        "norm": lambda x: F.layer_norm(x, (4,))[:, 1:].pow(2).sum(),
        "double": lambda x: x.double().pow(2).sum(),
        "cross entropy": lambda x: F.cross_entropy(x, torch.tensor([1, 2, 0]).to(x.device)),
    }
    x = torch.arange(12.0).reshape(3, 4) / 7
    for name, loss in losses.items():
        here = x.to("cluster").requires_grad_()
        there = x.clone().requires_grad_()
        loss(here).backward()
        loss(there).backward()
        assert torch.allclose(here.grad.cpu(), there.grad, atol=1e-6), name


@embedded_only
def test_backward_passes_stay_in_their_session():
    """This holds for every kind of loss, and after other sessions."""
    backward_passes()
    for _ in range(2):
        with gt.Session(workers=1):
            backward_passes()
    backward_passes()


@embedded_only
def test_sessions_of_threads():
    """Threads take turns to train, each in its own session."""
    failures = []
    turn = threading.Lock()

    def work():
        try:
            with gt.Session(workers=1):
                for _ in range(3):
                    with turn:
                        backward_passes()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert not failures and not any(thread.is_alive() for thread in threads)


def test_views_of_inference_tensors():
    """A view is an inference tensor if its base is one, inside and outside of inference mode."""

    def seen(device):
        found = []
        with torch.inference_mode():
            made = torch.ones(2, 2, device=device)
            plain = torch.nn.Linear(2, 2).to(device).weight
            found += [of.is_inference() for of in (made.t(), made[0], plain.t(), plain.view(4))]
        for view in (made.view(-1), made[0], made.t(), made.as_strided((2,), (1,)), made[None]):
            found.append(view.is_inference())
            try:
                view.add_(1)
            except RuntimeError as error:
                found.append(str(error)[:40])
        return found

    assert seen("cluster") == seen("cpu")


@embedded_only
def test_values_of_two_sessions():
    """Tensors of two sessions are distinguished even if both are the nth of their session."""
    with gt.Session(workers=1):
        ours = [torch.full((3,), float(i), device="cluster") for i in range(8)]
        for _ in range(3):
            copy = ours[2].clone()
            assert (copy * ours[2]).tolist() == [4.0] * 3
            assert torch.cat([ours[2], ours[2]]).tolist() == [2.0] * 6
            torch.addcmul(ours[2], ours[2], ours[2])
        with gt.Session(workers=1):
            theirs = [torch.full((3,), 10.0 + i, device="cluster") for i in range(8)]
            for one, other in zip(ours, theirs, strict=True):
                for operation in (torch.mul, torch.add, lambda a, b: torch.cat([a, b])):
                    with pytest.raises((RuntimeError, ValueError), match="session"):
                        operation(one, other)
                with pytest.raises((RuntimeError, ValueError), match="session"):
                    torch.addcmul(one, other, other)


def test_what_does_not_fit():
    """Errors about shapes and ranges are PyTorch's, in the first and in later calls."""
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"size of tensor a \(0\) must match"):
            torch.zeros(0, device="cluster").copy_(torch.ones(3, device="cluster"))
        with pytest.raises(RuntimeError, match="unsupported range"):
            torch.arange(0, float("nan"), device="cluster")
        with pytest.raises(RuntimeError, match="step must be nonzero"):
            torch.arange(0, 3, 0, device="cluster")
        with pytest.raises(RuntimeError, match="inconsistent with step sign"):
            torch.arange(0, 3, -1, device="cluster")


def test_the_caches_of_kernels_are_bounded_and_counted():
    """Calls of more shapes than a kernel keeps are right, and the oldest make room."""
    for length in (*range(1, 600), 1, 2, 599):
        x = torch.arange(length, dtype=torch.float32)
        there = x.to("cluster")
        assert torch.addcmul(there, there, there).cpu().allclose(torch.addcmul(x, x, x))
    stats = gt.debug.get_cache_stats()["aten::addcmul"]
    assert set(stats) == {"entries", "instructions", "hits", "misses", "evicted"}
    assert 0 < stats["entries"] <= 2 * 512 and stats["instructions"] >= stats["entries"]
    assert stats["misses"] >= 500
