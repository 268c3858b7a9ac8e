"""The types that checkers must find, each stated by `assert_type`."""

from typing import Any

import gt
import gt.nn as nn
from gt import Tensor
from gt._results import SVD, Eigen, ValuesIndices
from gt._size import Size
from gt.nn.parameter import Parameter
from gt.utils.data import DataLoader, Dataset, Subset, TensorDataset, random_split
from typing_extensions import assert_type

x = gt.ones(2, 3)
image = gt.ones(1, 1, 4, 4)
square = gt.eye(3)

# Results that depend on the arguments.
assert_type(x.max(), Tensor)
assert_type(x.max(1), ValuesIndices)
assert_type(x.max(1).values, Tensor)
assert_type(x.max(dim=1, keepdim=True).indices, Tensor)
assert_type(x.max(axis=1), Tensor)
assert_type(x.max(x), Tensor)
assert_type(gt.max(x), Tensor)
assert_type(gt.min(x, 0), ValuesIndices)
assert_type(x.median(), Tensor)
assert_type(x.median(0), ValuesIndices)
assert_type(gt.topk(x, 3).indices, Tensor)
assert_type(x.sort(descending=True), ValuesIndices)
assert_type(x.nonzero(), Tensor)
assert_type(x.nonzero(as_tuple=True), tuple[Tensor, ...])
assert_type(gt.where(x > 0), tuple[Tensor, ...])
assert_type(gt.where(x > 0, x, 0.0), Tensor)
assert_type(x.unique(), Tensor)
assert_type(gt.unique(x, return_counts=True), tuple[Tensor, Tensor])
assert_type(nn.functional.max_pool2d(image, 2), Tensor)
assert_type(nn.functional.max_pool2d(image, 2, return_indices=True), tuple[Tensor, Tensor])
assert_type(gt.atleast_2d(x), Tensor)
assert_type(gt.linalg.svd(x), SVD)
assert_type(gt.linalg.eigh(square), Eigen)
assert_type(gt.linalg.eigh(square).eigenvalues, Tensor)

# Names of PyTorch and of NumPy.
assert_type(x.sum(dim=1, keepdim=True), Tensor)
assert_type(x.sum(axis=1, keepdims=True), Tensor)
assert_type(x.mean(axis=(0, 1)), Tensor)
assert_type(gt.cat([x, x], axis=0), Tensor)
assert_type(x.split(1, axis=0), tuple[Tensor, ...])

# Shapes, values and other properties.
assert_type(x.shape, Size)
assert_type(x.shape.numel(), int)
assert_type(x.shape[0], int)
assert_type(x.size(), Size)
assert_type(x.size(0), int)
assert_type(x.stride(), tuple[int, ...])
assert_type(len(x), int)
assert_type(x.sum().item(), bool | Any)
assert_type(x.tolist(), list[Any])
assert_type(x.dtype, gt.dtype)
assert_type(x.device, gt.device)
assert_type(x.requires_grad, bool)
assert_type(x.grad, Tensor | Any)
number: float = x.sum().item()
index: int = x.argmax().item()
is_equal: bool = (x == x).all().item()

# Operators and indices.
assert_type(2 * x, Tensor)
assert_type(x**2 - 1, Tensor)
assert_type(1 / x, Tensor)
assert_type(x == 1, Tensor)
assert_type(x > x, Tensor)
assert_type(x[0, :, None], Tensor)
assert_type(list(x), list[Tensor])

# Modules.
assert_type(nn.Linear(3, 4)(x), Tensor)
assert_type(nn.Linear(3, 4).weight, Parameter)
assert_type(nn.Linear(3, 4).to(gt.float64).eval(), nn.Linear)
assert_type(nn.LSTM(3, 4)(x)[1], tuple[Tensor, Tensor])
assert_type(nn.CrossEntropyLoss()(x, x), Tensor)


class Pair(nn.Module):
    def forward(self, x: Tensor, scale: float = 1.0) -> tuple[Tensor, float]:
        return x * scale, scale


assert_type(Pair()(x, scale=2.0), tuple[Tensor, float])
assert_type(next(nn.Linear(3, 4).parameters()), Parameter)
assert_type(list(Pair().parameters()), list[Parameter])
assert_type(dict(Pair().named_parameters()), dict[str, Parameter])
assert_type([*Pair().modules()], list[nn.Module])
assert_type(gt.compile(Pair())(x), tuple[Tensor, float])


# Loaders.
class Labelled(Dataset[tuple[Tensor, int]]):
    def __getitem__(self, index: Any) -> tuple[Tensor, int]:
        return x, 1

    def __len__(self) -> int:
        return 4


class Named(Dataset[dict[str, Tensor]]):
    def __getitem__(self, index: Any) -> dict[str, Tensor]:
        return {"x": x}

    def __len__(self) -> int:
        return 4


def collate(samples: list[tuple[Tensor, int]]) -> set[int]:
    return {label for _, label in samples}


assert_type(list(DataLoader(TensorDataset(x, x))), list[list[Tensor]])
assert_type(list(DataLoader(Labelled(), batch_size=2, shuffle=True)), list[list[Tensor]])
assert_type(list(DataLoader(Named())), list[dict[str, Tensor]])
assert_type(list(DataLoader(Labelled(), collate_fn=collate)), list[Any])
assert_type(list(DataLoader([1, 2, 3])), list[Any])
assert_type(random_split(Labelled(), [0.5, 0.5]), list[Subset[tuple[Tensor, int]]])
for batch, labels in DataLoader(Labelled(), batch_size=4):
    assert_type(batch, Tensor)
    assert_type(labels, Tensor)


# Decorators and transforms keep the types of a function.
@gt.no_grad()
def plus(x: Tensor, y: int) -> Tensor:
    return x + y


def total(x: Tensor) -> Tensor:
    return x.sum()


@gt.compile(name="twice")
def twice(x: Tensor) -> Tensor:
    return x * 2


assert_type(plus(x, 1), Tensor)
assert_type(twice(x), Tensor)
assert_type(gt.vmap(twice)(x), Tensor)
assert_type(gt.autograd.functional.hessian(total, x), Tensor)
assert_type(gt.save(x, "x.gt"), None)
assert_type(gt.is_tensor(x), bool)
