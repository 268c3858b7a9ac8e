"""Layers: arguments, states, reprs, outputs and gradients are those of PyTorch."""

import inspect
import warnings

import gt
import numpy as np
import pytest
from layer_cases import ALL, Case
from layer_cases import LAZY as LAZY_CASES

torch = pytest.importorskip("torch")

#: Names of torch.nn that are compared in other tests.
ELSEWHERE = {
    "Container", "GRU", "GRUCell", "LSTM", "LSTMCell", "Module", "ModuleDict", "ModuleList",
    "MultiheadAttention", "ParameterDict", "ParameterList", "RNN", "RNNBase", "RNNCell",
    "RNNCellBase", "Sequential", "Transformer", "TransformerDecoder", "TransformerDecoderLayer",
    "TransformerEncoder", "TransformerEncoderLayer",
}  # fmt: skip
LAYERS = sorted(set(torch.nn.modules.__all__) - ELSEWHERE - {"LinearCrossEntropyOptions"})


def make(library, case: Case):
    """Return a case's layer in one of the two libraries."""

    def convert(value):
        if not isinstance(value, np.ndarray):
            return value
        return torch.tensor(value) if library is torch else gt.tensor(value)

    options = {name: convert(value) for name, value in case.options.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layer = getattr(library.nn, case.name)(*map(convert, case.args), **options)
    return layer.eval() if case.evaluated else layer


def inputs_of(case: Case):
    """Return a case's inputs in both libraries."""
    arrays = [
        make_input(np.random.default_rng(number)) for number, make_input in enumerate(case.inputs)
    ]
    theirs = [torch.tensor(array) for array in arrays]
    ours = [gt.tensor(array) for array in arrays]
    for number in range(case.trained):
        theirs[number].requires_grad_()
        ours[number].requires_grad_()
    return theirs, ours


def arrays_of(output) -> list[np.ndarray]:
    """Return the outputs of a layer as arrays."""
    parts = output if isinstance(output, tuple) else (output,)
    return [part.detach().numpy() for part in parts]


def backward(library, output) -> None:
    """Compute the gradients of a weighted sum of the outputs."""
    parts = output if isinstance(output, tuple) else (output,)
    total = 0
    for part in parts:
        if part.requires_grad:
            size = int(np.prod(part.shape, dtype=int))
            factors = np.cos(np.arange(size, dtype="float32")).reshape(tuple(part.shape))
            total = total + (part * library.tensor(factors)).sum()
    if not isinstance(total, int):
        total.backward()


def close(ours, theirs, what: str) -> None:
    # Sums of large terms may be small, so the tolerance is relative to the largest element.
    largest = np.abs(theirs).max(initial=1.0)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5 * largest, err_msg=what)


def shapes(state) -> list[tuple]:
    return [(name, tuple(value.shape)) for name, value in state.items()]


@pytest.mark.parametrize("case", ALL, ids=str)
def test_layers_compute_what_pytorch_does(case):
    theirs, ours = make(torch, case), make(gt, case)
    their_inputs, our_inputs = inputs_of(case)
    assert repr(ours) == repr(theirs)
    if case in LAZY_CASES:
        with torch.no_grad(), gt.no_grad():
            theirs(*their_inputs)
            ours(*our_inputs)
        assert type(ours).__name__ == type(theirs).__name__ == case.name.removeprefix("Lazy")
        assert repr(ours) == repr(theirs)
    state = theirs.state_dict()
    assert shapes(ours.state_dict()) == shapes(state)
    ours.load_state_dict(state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, given = theirs(*their_inputs), ours(*our_inputs)
    for want, got in zip(arrays_of(expected), arrays_of(given), strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        close(got, want, "output")
    backward(torch, expected)
    backward(gt, given)
    for number, (their, our) in enumerate(zip(their_inputs, our_inputs, strict=True)):
        if their.grad is not None:
            close(our.grad.numpy(), their.grad.numpy(), f"gradient of input {number}")
    for (name, their), our in zip(theirs.named_parameters(), ours.parameters(), strict=True):
        close(our.grad.numpy(), their.grad.numpy(), f"gradient of {name}")
    for name, value in theirs.state_dict().items():
        close(ours.state_dict()[name].numpy(), value.numpy(), name)
    theirs.load_state_dict({k: torch.tensor(v.numpy()) for k, v in ours.state_dict().items()})


def test_every_layer_of_pytorch_is_compared():
    assert set(LAYERS) == {case.name for case in ALL}


@pytest.mark.parametrize("name", LAYERS)
def test_arguments_are_those_of_pytorch(name):
    def told(function) -> list:
        parameters = inspect.signature(function).parameters.values()
        return [(p.name, p.kind, p.default) for p in parameters]

    theirs, ours = getattr(torch.nn, name), getattr(gt.nn, name)
    assert told(ours.__init__) == told(theirs.__init__)
    assert [n for n, _, _ in told(ours.forward)] == [n for n, _, _ in told(theirs.forward)]


def test_attributes_are_those_of_pytorch():
    lacking = {}
    for case in ALL:
        theirs, ours = make(torch, case), make(gt, case)
        names = {name for name in vars(theirs) if not name.startswith("_")}
        wrong = {name for name in names if name not in vars(ours)}
        for name in names - wrong:
            value = getattr(theirs, name)
            if isinstance(value, (bool, int, float, str, tuple, list, type(None))):
                if getattr(ours, name) != value:
                    wrong.add(name)
        if wrong:
            lacking[str(case)] = wrong
    assert not lacking


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("Linear", (40, 500)),
        ("Bilinear", (20, 30, 40)),
        ("Conv1d", (16, 64, 5)),
        ("Conv2d", (16, 64, 3, 1, 0, 1, 2)),
        ("Conv3d", (8, 16, 3)),
        ("ConvTranspose2d", (32, 64, 3)),
        ("ConvTranspose2d", (32, 64, 3, 1, 0, 0, 4)),
        ("Embedding", (500, 40, 3)),
        ("EmbeddingBag", (500, 40)),
        ("PReLU", (10, 0.1)),
        ("BatchNorm2d", (10,)),
        ("LayerNorm", (10,)),
        ("AdaptiveLogSoftmaxWithLoss", (64, 1000, [100, 300])),
    ],
)
def test_initial_values_are_distributed_as_in_pytorch(name, args):
    gt.manual_seed(0)
    torch.manual_seed(0)
    theirs, ours = getattr(torch.nn, name)(*args), getattr(gt.nn, name)(*args)
    for key, value in theirs.state_dict().items():
        want, got = value.double().numpy(), ours.state_dict()[key].double().numpy()
        scale = max(want.std(), 1e-12)
        noise = 8 / np.sqrt(max(want.size, 1))
        assert abs(got.mean() - want.mean()) <= scale * noise, key
        assert abs(got.std() - want.std()) <= scale * noise, key
        if name not in ("Embedding", "EmbeddingBag"):
            assert abs(got).max() <= abs(want).max() * (1 + noise), key
        np.testing.assert_array_equal((got == 0).all(-1), (want == 0).all(-1))
