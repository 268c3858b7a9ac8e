"""Layers take arrays of NumPy's and PyTorch's tensors as inputs, in place of GT's."""

import os
import warnings

import gt
import numpy as np
import pytest
from processes import embedded_only

torch = pytest.importorskip("torch")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PyTorch's tests warn about missing optional packages
    from database import converted, module_db, name_of, samples
    from foreign import KINDS, Replacing, ToGt, difference, tensors_in, values

pytestmark = [
    embedded_only,
    pytest.mark.skipif("GT_BACKEND" in os.environ, reason="inputs are compared on one engine"),
]


def result(module, given, replaced):
    """Return the values of a call of a module, with some tensors replaced."""
    args, kwargs = Replacing(replaced)((given.args, given.kwargs))
    gt.manual_seed(0)
    return values(module(*args, **kwargs))


@pytest.mark.parametrize("info", module_db, ids=name_of)
@pytest.mark.parametrize("training", [True, False])
def test_layers_take_arrays(info, training):
    make = getattr(gt.nn, name_of(info), None)
    if make is None:
        pytest.skip(f"there is no gt.nn.{name_of(info)}")
    for sample in list(samples(info, torch.float32, training))[:3]:
        made, called = sample.constructor_input, sample.forward_input
        module = make(*converted(ToGt(), made.args), **converted(ToGt(), made.kwargs))
        module.train(training)
        result(module, called, {})  # creates the parameters of a lazy module
        state = module.state_dict()
        state = {name: value.clone() for name, value in state.items()}
        want = result(module, called, {})
        for tensor in tensors_in((called.args, called.kwargs)):
            for kind, change in KINDS.items():
                module.load_state_dict(state)
                given = result(module, called, {id(tensor): change(tensor)})
                assert not difference(given, want), (sample.desc, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_states_of_recurrent_layers_are_arrays(kind):
    given, state = torch.rand(3, 2, 4), torch.rand(1, 2, 5)
    make, x = KINDS[kind], gt.tensor(given.numpy())
    for layer in (gt.nn.GRU(4, 5), gt.nn.RNN(4, 5)):
        assert layer(x, make(state))[0].equal(layer(x, gt.tensor(state.numpy()))[0])
    layer, ours = gt.nn.LSTM(4, 5), gt.tensor(state.numpy())
    assert layer(x, (make(state), make(state)))[0].equal(layer(x, (ours, ours))[0])


def test_layers_of_the_user_get_what_they_are_called_with():
    class Model(gt.nn.Module):
        def forward(self, x):
            assert type(x) is np.ndarray
            return gt.tensor(x)

    assert gt.nn.Sequential(Model(), gt.nn.ReLU())(np.ones(2)).tolist() == [1, 1]
