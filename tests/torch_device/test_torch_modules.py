"""PyTorch's database of modules on the device "cluster", compared with the CPU."""

import copy
import warnings

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
device = pytest.importorskip("gt.torch")
pytest.importorskip("expecttest")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_modules import module_db
    from torch.utils import _pytree as pytree

pytestmark = pytest.mark.filterwarnings("ignore")
CLOSE = {"rtol": 1e-3, "atol": 1e-4, "equal_nan": True}
#: Modules that draw random numbers, some only in training: each device draws other numbers.
RANDOM = ("Dropout", "RReLU", "FractionalMaxPool")


def moved(given):
    """Return arguments on the device."""

    def move(one):
        if not isinstance(one, torch.Tensor):
            return one
        return one.detach().to("cluster").requires_grad_(one.requires_grad)

    return pytree.tree_map(move, given)


def tensors(outputs):
    return [one for one in pytree.tree_leaves(outputs) if isinstance(one, torch.Tensor)]


def weights(output):
    """Return fixed weights for a sum of the output, whose plain sum may have zero gradients."""
    generator = torch.Generator().manual_seed(0)
    return torch.rand(output.shape, generator=generator).to(output.device, output.dtype)


def samples(info, training):
    """Yield modules of a kind with their arguments."""
    make = info.module_inputs_func
    options = {"device": "cpu", "dtype": torch.float32, "requires_grad": True}
    torch.manual_seed(0)
    for sample in make(info, training=training, **options):
        if sample.forward_input is not None:
            torch.manual_seed(0)
            given = sample.constructor_input
            module = info.module_cls(*given.args, **given.kwargs).train(training)
            yield module, (sample.forward_input.args, sample.forward_input.kwargs)


def check(module, given):
    """Compare a module's results, gradients and buffers with those of a copy on the device."""
    if isinstance(module, torch.nn.modules.lazy.LazyModuleMixin):
        module(*given[0], **given[1])
    other, (args, kwargs) = copy.deepcopy(module).to("cluster"), moved(given)
    expected = tensors(module(*given[0], **given[1]))
    found = tensors(other(*args, **kwargs))
    assert len(found) == len(expected)
    for one, wanted in zip(found, expected, strict=True):
        assert one.device.type == "cluster" and one.dtype == wanted.dtype
        torch.testing.assert_close(one.detach().cpu(), wanted.detach(), **CLOSE)
    for outputs in (found, expected):
        with_gradients = [(one * weights(one)).sum() for one in outputs if one.requires_grad]
        if with_gradients:
            sum(with_gradients).backward()
    pairs = [
        *zip(other.parameters(), module.parameters(), strict=True),
        *zip(tensors((args, kwargs)), tensors(given), strict=True),
    ]
    for one, wanted in pairs:
        if not wanted.is_leaf:
            continue
        assert (one.grad is None) == (wanted.grad is None)
        if wanted.grad is not None:
            torch.testing.assert_close(one.grad.cpu(), wanted.grad, **CLOSE)
    for one, wanted in zip(other.buffers(), module.buffers(), strict=True):
        torch.testing.assert_close(one.cpu(), wanted, **CLOSE)


@pytest.mark.parametrize("info", module_db, ids=lambda info: info.name)
def test_module(info):
    """All samples of a module, trained and evaluated."""
    count = 0
    for training in (True, False) if info.train_and_eval_differ else (True,):
        if training and any(word in info.name for word in RANDOM):
            continue
        for module, given in samples(info, training):
            check(module, given)
            count += 1
    assert count or any(word in info.name for word in RANDOM)
