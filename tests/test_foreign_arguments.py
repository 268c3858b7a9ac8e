"""Arrays of NumPy's and PyTorch's tensors, devices, dtypes and tensor types as arguments."""

import collections

import gt
import numpy as np
import pytest

torch = pytest.importorskip("torch")
F = gt.nn.functional

LINES = """
gt.add(x, v)
x + v
v * x
gt.matmul(x, v.T)
gt.cat([x, v])
gt.stack([v, x])
gt.stack([v, v])
gt.where(x > 0, x, v)
gt.max(x, v)
gt.einsum("ij,kj->ik", x, v)
gt.zeros_like(v)
gt.full_like(v, 2.0)
gt.norm(v)
gt.linalg.norm(v)
gt.outer(v[0], x[0])
gt.clamp(v, 0, 1)
gt.allclose(x, v)
gt.masked_select(x, v > 0)
gt.gather(x, 1, n)
gt.topk(v, 1)
F.relu(v)
F.dropout(v, 0.0)
F.softmax(v, dim=1)
F.linear(v, gt.ones(4, 3))
F.mse_loss(x, v)
F.mse_loss(v, x)
F.cross_entropy(x, n[:, 0])
F.nll_loss(v, n[:, 0])
F.one_hot(n)
F.conv1d(v[None], gt.ones(2, 2, 1))
gt.nn.Linear(3, 2, bias=False)(v).shape
gt.nn.Embedding(3, 2)(n).shape
gt.nn.BatchNorm1d(3)(v)
gt.nn.MSELoss()(x, v)
gt.nn.utils.rnn.pad_sequence([v, v[:1]])
gt.nn.utils.rnn.pack_padded_sequence(v, [2, 2, 1]).data
gt.func.grad(lambda y: (y * x).sum())(v)
gt.func.grad(lambda y, z: (y * z).mean(), argnums=1)(x, v)
gt.func.grad(lambda d: (d["a"] * d["b"]).sum())({"a": x, "b": v})["b"]
gt.func.vjp(lambda y: y * x, v)[0]
gt.func.vjp(lambda y: y * x, v)[1](v)[0]
gt.func.jvp(lambda y: y * x, (v,), (v,))[1]
gt.func.linearize(lambda y: y * x, v)[1](v)
gt.func.jacrev(lambda y: y * 2)(v)
gt.func.hessian(lambda y: (y**3).sum())(v)
gt.func.vmap(lambda y: y.sum())(v)
gt.func.vmap(lambda y, z: y + z.sum(), in_dims=(0, None))(x, v)
gt.vmap(lambda y, z: y * z, in_dims=(1, 1), chunk_size=2)(v, x)
gt.func.functional_call(gt.nn.Linear(3, 2), {"weight": v, "bias": v[:, 0]}, x).detach()
gt.autograd.functional.vjp(lambda y: y * x, v, v)[1]
gt.utils.checkpoint.checkpoint(gt.relu, v, use_reentrant=False)
gt.nn.Embedding.from_pretrained(v)(n % 2)
""".strip().splitlines()


def values(kind):
    v, n = np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3), np.arange(6).reshape(2, 3) % 3
    return {"gt": (gt.tensor(v), gt.tensor(n)), "numpy": (v, n)}.get(kind) or tuple(
        torch.from_numpy(each) for each in (v, n)
    )


def result(line, kind):
    v, n = values(kind)
    return eval(
        line,
        {"gt": gt, "F": F, "x": gt.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]]), "v": v, "n": n},
    )


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("line", LINES)
def test_functions_take_arrays_as_tensors(line, kind):
    given, wanted = result(line, kind), result(line, "gt")
    for one, other in zip(
        *((r if isinstance(r, tuple) else (r,)) for r in (given, wanted)), strict=True
    ):
        assert type(one) is type(other)
        assert one.equal(other) if isinstance(one, gt.Tensor) else one == other


def test_gradients_do_not_flow_to_pytorch():
    with pytest.raises(TypeError, match="gradients do not flow from GT to PyTorch"):
        gt.norm(torch.ones(2, requires_grad=True))
    x = gt.ones(2, requires_grad=True)
    gt.stack([x, torch.ones(2, dtype=torch.bfloat16)]).sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_errors_stay_errors():
    with pytest.raises(ValueError, match="matmul: shapes"):
        gt.matmul(gt.ones(2, 3), np.ones((2, 3)))
    with pytest.raises(TypeError, match="there is no|unexpected|got an"):
        gt.norm(np.ones(2), no_such_option=1)


@pytest.mark.filterwarnings("ignore:device 'cuda'")
def test_devices_and_dtypes_of_pytorch():
    x = gt.ones(2)
    assert x.to(torch.device("cpu")) is x and x.to(torch.device("cuda", 0)) is x
    assert x.to(torch.device("cpu"), torch.float16).dtype == gt.float16
    assert x.to(device=torch.device("cpu"), dtype=torch.int64).dtype == gt.int64
    assert gt.zeros(1, dtype=torch.float64, device=torch.device("cpu")).dtype == gt.float64
    assert gt.device(torch.device("cuda:1")) == gt.device("cuda:1")
    assert gt.nn.Linear(1, 1).to(torch.device("cpu"), torch.float64).weight.dtype == gt.float64
    with pytest.raises(RuntimeError, match="meta"):
        x.to(torch.device("meta"))


@pytest.mark.parametrize(
    "kind", [gt.LongTensor, gt.cuda.LongTensor, torch.LongTensor, "torch.LongTensor"]
)
def test_tensor_types(kind):
    assert gt.ones(2).type(kind).dtype == gt.int64
    assert gt.nn.Linear(1, 1).type("torch.DoubleTensor").weight.dtype == gt.float64
    assert gt.nn.Linear(1, 1).type(gt.DoubleTensor).weight.dtype == gt.float64


class Pair:
    def __len__(self):
        return 2

    def __getitem__(self, index):
        if index > 1:
            raise IndexError
        return index


def test_tensors_are_made_of_sequences():
    assert gt.tensor(collections.deque([1.0, 2.0])).tolist() == [1, 2]
    assert gt.as_tensor([collections.deque([1]), (2,)]).tolist() == [[1], [2]]
    assert gt.LongTensor(Pair()).tolist() == [0, 1] and gt.FloatTensor(range(2)).tolist() == [0, 1]
    for wrong in ({1: 2}, {1, 2}, "12", b"12", iter([1])):
        with pytest.raises(TypeError, match="a tensor is made from numbers"):
            gt.tensor(wrong)


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_a_dense_tensor_stands_for_a_sparse_one():
    places, numbers = np.array([[0, 1, 1], [2, 0, 0]]), np.array([1.0, 2.0, 3.0], "float32")
    want = torch.sparse_coo_tensor(torch.from_numpy(places), torch.from_numpy(numbers), (2, 3))
    with pytest.warns(UserWarning, match="no sparse tensors; a dense one"):
        given = gt.sparse_coo_tensor(places, numbers, (2, 3))
    assert given.coalesce().to_dense().tolist() == want.to_dense().tolist()
    assert (
        gt.spmm(given, gt.ones(3, 1)).tolist() == torch.sparse.mm(want, torch.ones(3, 1)).tolist()
    )
    with pytest.warns(UserWarning):
        assert gt.sparse.FloatTensor(places, numbers).shape == (2, 3)
    with pytest.raises(ValueError, match="expected \\(axes, count\\)"):
        gt.sparse_coo_tensor(places, numbers[:2])


def test_functions_of_torchvision(tmp_path):
    theirs = pytest.importorskip("torchvision.utils")
    from gt.torchvision.ops import nms
    from gt.torchvision.transforms.functional import resize
    from gt.torchvision.utils import make_grid, save_image

    images = np.random.default_rng(0).random((4, 3, 6, 6), "float32")
    grid = make_grid(gt.from_numpy(images), nrow=2, normalize=True)
    want = theirs.make_grid(torch.from_numpy(images), nrow=2, normalize=True)
    assert isinstance(grid, gt.Tensor) and grid.tolist() == want.tolist()
    save_image([gt.ones(3, 4, 4), gt.zeros(3, 4, 4)], tmp_path / "image.png")
    assert (tmp_path / "image.png").stat().st_size > 0
    boxes = gt.tensor([[0, 0, 2, 2], [0, 0, 2, 1.9], [5, 5, 6, 6]])
    assert nms(boxes, gt.tensor([0.9, 0.8, 0.7]), 0.5).tolist() == [0, 2]
    assert resize(gt.from_numpy(images), [3, 3]).shape == (4, 3, 3, 3)


def test_loaders_collate_what_transforms_of_torchvision_return():
    transforms = pytest.importorskip("torchvision.transforms")
    convert = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))])
    images = np.random.default_rng(0).integers(0, 255, (4, 5, 5, 1)).astype("uint8")
    samples = [(convert(image), at) for at, image in enumerate(images)]
    batch, labels = next(iter(gt.data.DataLoader(samples, batch_size=4)))
    assert isinstance(batch, gt.Tensor) and batch.shape == (4, 1, 5, 5) and labels.dtype == gt.int64
    np.testing.assert_allclose(
        batch.numpy()[:, 0], images[..., 0] / 127.5 - 1, rtol=1e-5, atol=1e-6
    )
