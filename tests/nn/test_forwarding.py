"""Modules that are declared: constructors, subclasses and copies."""

import copy
import dataclasses
import inspect
import pickle

import gt
import pytest
from gt import nn


class Scaled(nn.CrossEntropyLoss):
    scale: float

    def __init__(self, scale):
        super().__init__(label_smoothing=0.5)
        self.scale = scale

    def forward(self, input, target):
        return super().forward(input, target) * self.scale


def test_a_constructor_has_the_declared_parameters():
    parameters = inspect.signature(nn.Threshold).parameters
    assert list(parameters) == ["threshold", "value", "inplace"]
    assert parameters["inplace"].default is False
    with pytest.raises(TypeError, match="Threshold.*missing 1 required.*'value'"):
        nn.Threshold(1)
    with pytest.raises(TypeError, match="GaussianNLLLoss.*positional"):
        nn.GaussianNLLLoss(True)
    with pytest.raises(TypeError, match="LeakyReLU.*unexpected keyword argument 'slope'"):
        nn.LeakyReLU(slope=1)


def test_a_subclass_may_have_its_own_constructor_and_annotations():
    x, target = gt.tensor([[1.0, 2.0]]), gt.tensor([0], dtype=gt.int64)
    want = 2 * nn.CrossEntropyLoss(label_smoothing=0.5)(x, target)
    loss = Scaled(2)
    for same in (loss, copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert same(x, target).item() == want.item()

    class Leaky(nn.LeakyReLU):
        unrelated: int = 3

    assert repr(Leaky(0.5)) == "Leaky(negative_slope=0.5)"
    assert inspect.signature(Leaky) == inspect.signature(nn.LeakyReLU)


def test_options_are_read_when_the_module_is_called():
    x = gt.tensor([-1.0])
    module = nn.LeakyReLU()
    module.negative_slope = 0.5
    assert module(x).tolist() == [-0.5]
    module.__class__ = nn.Sigmoid
    assert module(x).item() == x.sigmoid().item()


def test_weights_are_buffers_and_parameters_as_options_are_registered():
    loss = nn.NLLLoss(weight=gt.ones(3)).double()
    assert list(loss.state_dict()) == ["weight"] and loss.weight.dtype == gt.float64
    assert not nn.NLLLoss().state_dict()
    module = nn.LeakyReLU(nn.Parameter(gt.ones(1)))
    assert [name for name, _ in module.named_parameters()] == ["negative_slope"]


def test_an_error_names_the_users_line():
    with pytest.raises(Exception, match="test_forwarding.py") as caught:
        nn.CrossEntropyLoss()(gt.zeros(2, 3), gt.tensor([1, 7], dtype=gt.int64)).item()
    assert "<string>" not in str(caught.value)


def test_other_bases_are_initialized():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.tag = 1

    class Both(nn.ReLU, Named):
        pass

    assert Both().tag == 1


def test_functions_of_nn_are_functions():
    modules = {"functional", "init", "utils"}
    for name in nn.__all__:
        if name.islower() and name not in modules:
            assert callable(getattr(nn, name)), name


def test_a_patched_function_is_called(monkeypatch):
    monkeypatch.setattr(nn.functional, "relu", lambda input, inplace: input + 5)
    assert nn.ReLU()(gt.tensor([-1.0])).tolist() == [4.0]


def test_modules_are_no_data_classes_and_their_methods_are_pickled():
    assert not dataclasses.is_dataclass(nn.Threshold(1, 2))
    assert pickle.loads(pickle.dumps(nn.ReLU.forward)) is nn.ReLU.forward
    with pytest.raises(TypeError, match=r"^ReLU: takes from 0 to 1"):
        nn.ReLU(1, 2, 3)
