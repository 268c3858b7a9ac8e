"""Recurrent networks, packed sequences and transformers with equal weights, as in PyTorch."""

import warnings

import gt
import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.filterwarnings("ignore:enable_nested_tensor"),
    pytest.mark.filterwarnings("ignore:LSTM with projections"),
]


def both(make):
    """Return a module of GT and one of PyTorch with the same values."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = make(torch.nn), make(gt.nn)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert repr(ours) == repr(theirs)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def data(*shape):
    """Return random numbers, the same for both libraries."""
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def close(ours, theirs, what=""):
    """Compare within 1e-5 of the largest element."""
    if isinstance(theirs, (tuple, list)):
        for one, other in zip(ours, theirs, strict=True):
            close(one, other, what)
        return
    if theirs is None:
        assert ours is None, what
        return
    want = theirs.detach().numpy()
    scale = max(1e-3, float(np.abs(want).max(initial=0)))
    assert tuple(ours.shape) == want.shape, what
    np.testing.assert_allclose(ours.detach().numpy() / scale, want / scale, atol=1e-5, err_msg=what)


def compare(ours, theirs, call):
    """Compare outputs and all gradients."""
    found, wanted = call(ours, gt), call(theirs, torch)
    close(found, wanted)
    for outputs in (found, wanted):
        leaves = [outputs] if hasattr(outputs, "sum") else flat(outputs)
        sum((leaf * leaf).sum() for leaf in leaves if leaf is not None).backward()
    for (name, p), q in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        close(p.grad, q.grad, name)


def flat(value):
    """Return the tensors of nested tuples."""
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in flat(item)]
    return [value]


RECURRENT = [
    lambda nn: nn.RNN(3, 5),
    lambda nn: nn.RNN(3, 5, 2, "relu", bidirectional=True),
    lambda nn: nn.LSTM(3, 5, 2, batch_first=True),
    lambda nn: nn.LSTM(3, 5, 2, bias=False, bidirectional=True),
    lambda nn: nn.LSTM(3, 5, 2, proj_size=2, bidirectional=True),
    lambda nn: nn.GRU(3, 5, 2, bidirectional=True, batch_first=True),
    lambda nn: nn.GRU(3, 5, bias=False),
]


@pytest.mark.parametrize("index", range(len(RECURRENT)))
@pytest.mark.parametrize("with_state", [False, True])
def test_recurrent_networks(index, with_state):
    ours, theirs = both(RECURRENT[index])

    def state(lib, batch):
        count = theirs.num_layers * (2 if theirs.bidirectional else 1)
        widths = [theirs.proj_size or 5, 5][: 2 if theirs.mode == "LSTM" else 1]
        shapes = [(count, batch, width) if batch else (count, width) for width in widths]
        made = tuple(lib.from_numpy(data(*shape)) for shape in shapes)
        if not with_state:
            return None
        return made if len(made) == 2 else made[0]

    compare(ours, theirs, lambda m, lib: m(lib.from_numpy(data(4, 4, 3)), state(lib, 4)))
    compare(ours, theirs, lambda m, lib: m(lib.from_numpy(data(6, 3)), state(lib, 0)))

    def packed(module, lib):
        pack = lib.nn.utils.rnn.pack_padded_sequence
        rows = lib.from_numpy(data(5, 3, 3))
        output, last = module(pack(rows, [2, 5, 3], enforce_sorted=False), state(lib, 3))
        padded, lengths = lib.nn.utils.rnn.pad_packed_sequence(output, padding_value=-1)
        assert lengths.tolist() == [2, 5, 3]
        return padded, last

    compare(ours, theirs, packed)


@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell"])
def test_cells(name):
    ours, theirs = both(lambda nn: getattr(nn, name)(3, 5))
    compare(ours, theirs, lambda m, lib: m(lib.from_numpy(data(4, 3))))
    compare(ours, theirs, lambda m, lib: m(lib.from_numpy(data(3))))


@pytest.mark.parametrize("mode", ["LSTM", "GRU", "RNN"])
def test_gradients_of_gradients_and_kept_graphs(mode):
    ours, theirs = both(lambda nn: getattr(nn, mode)(3, 4, bidirectional=True))

    def penalty(model, lib):
        x = lib.tensor(data(5, 2, 3), requires_grad=True)
        output, _ = model(x)
        (grad,) = lib.autograd.grad((output * output).sum(), x, create_graph=True)
        return grad

    compare(ours, theirs, penalty)
    x = gt.tensor(data(5, 2, 3), requires_grad=True)
    loss = ours(x)[0].sum()
    loss.backward(retain_graph=True)
    once = x.grad.clone()
    loss.backward()
    close(x.grad, torch.tensor((once * 2).numpy()))


def test_frozen_parameters_vmap_and_autocast():
    model = gt.nn.LSTM(3, 4)
    model.weight_hh_l0.requires_grad_(False)
    model(gt.ones(2, 1, 3))[0].sum().backward()
    assert model.weight_hh_l0.grad is None and model.weight_ih_l0.grad is not None
    per_sample = gt.vmap(lambda x: model(x)[0])(gt.ones(3, 2, 1, 3))
    close(per_sample[0], torch.tensor(model(gt.ones(2, 1, 3))[0].detach().numpy()))
    with gt.autocast("cpu", dtype=gt.bfloat16):
        model(gt.ones(2, 1, 3))[0].float().sum().backward()
    assert model.weight_ih_l0.grad.dtype == gt.float32


def test_dropout_between_layers():
    layer = gt.nn.LSTM(3, 4, 2, dropout=0.5)
    x = gt.randn(6, 2, 3)
    assert layer(x)[0].tolist() != layer(x)[0].tolist()
    layer.eval()
    assert layer(x)[0].tolist() == layer(x)[0].tolist()


@pytest.mark.parametrize(
    "mistake",
    [
        lambda lib: lib.nn.LSTM(3, 5)(lib.ones(2, 2, 4)),
        lambda lib: lib.nn.LSTM(3, 5)(lib.ones(3)),
        lambda lib: lib.nn.LSTM(3, 5)(lib.ones(2, 2, 3, dtype=lib.float64)),
        lambda lib: lib.nn.GRU(3, 5)(lib.ones(2, 2, 3), lib.ones(1, 3, 5)),
        lambda lib: lib.nn.GRU(3, 5)(lib.ones(2, 2, 3), lib.ones(1, 5)),
        lambda lib: lib.nn.GRU(3, 5, dropout=2.0),
        lambda lib: lib.nn.GRU(3, 0),
        lambda lib: lib.nn.GRU(3.0, 5),
        lambda lib: lib.nn.GRU(3, 5, bias=1),
        lambda lib: lib.nn.GRU(3, 5, proj_size=2),
        lambda lib: lib.nn.LSTM(3, 5, proj_size=5),
        lambda lib: lib.nn.RNN(3, 5, nonlinearity="x"),
        lambda lib: lib.nn.GRUCell(3, 5)(lib.ones(2, 4)),
        lambda lib: lib.nn.GRUCell(3, 5)(lib.ones(2, 3), lib.ones(3, 5)),
        lambda lib: lib.nn.GRUCell(3, 5)(lib.ones(2, 3, 1)),
        lambda lib: lib.nn.MultiheadAttention(4, 3),
        lambda lib: lib.nn.MultiheadAttention(0, 3),
        lambda lib: lib.nn.TransformerEncoderLayer(4, 2, activation="x"),
        lambda lib: lib.nn.Transformer(4, 2)(lib.ones(3, 2, 4), lib.ones(3, 1, 4)),
        lambda lib: lib.nn.Transformer(4, 2)(lib.ones(3, 2, 4), lib.ones(3, 2, 5)),
        lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.ones(3, 2), [1, 3]),
        lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.ones(3, 2), [3, 0]),
        lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.ones(3, 2), [3]),
        lambda lib: lib.nn.utils.rnn.pad_sequence([], True),
        lambda lib: lib.nn.utils.rnn.pad_sequence(3),
    ],
)
def test_mistakes_raise_the_same_errors(mistake):
    def error_of(lib):
        with pytest.raises(Exception) as caught:  # noqa: PT011
            mistake(lib)
        return caught.type

    assert issubclass(error_of(gt), error_of(torch))


def test_packed_sequences_are_the_same():
    def program(lib):
        rnn, found = lib.nn.utils.rnn, []
        rows = [lib.from_numpy(data(n, 2)) for n in (2, 4, 1)]
        padded = rnn.pad_sequence(rows, batch_first=True, padding_value=7.0)
        found += [padded, rnn.pad_sequence(rows, padding_side="left")]
        packed = rnn.pack_sequence(rows, enforce_sorted=False)
        found += [packed.data, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices]
        found += rnn.unpack_sequence(packed)
        found += rnn.pad_packed_sequence(packed, True, 3.0, total_length=6)
        found += rnn.unpad_sequence(
            padded, lib.tensor([2, 4, 1], dtype=lib.int64), batch_first=True
        )
        found.append(rnn.invert_permutation(lib.tensor([2, 0, 1], dtype=lib.int64)))
        found.append(packed.double().data)
        return [value.tolist() for value in found]

    assert program(gt) == program(torch)


ATTENTION = [
    {},
    {"bias": False, "batch_first": True},
    {"kdim": 3, "vdim": 5},
    {"add_bias_kv": True, "add_zero_attn": True},
]


@pytest.mark.parametrize("options", ATTENTION)
@pytest.mark.parametrize("averaged", [True, False])
def test_attention(options, averaged):
    ours, theirs = both(lambda nn: nn.MultiheadAttention(8, 2, **options))
    widths = [8, options.get("kdim", 8), options.get("vdim", 8)]

    def call(module, lib):
        inputs = [lib.from_numpy(data(4, 4, width)) for width in widths]
        mask = lib.from_numpy(np.triu(np.ones((4, 4), bool), 1))
        padding = lib.from_numpy(np.array([[False, False, i == 1, False] for i in range(4)]))
        masks = {"attn_mask": mask, "key_padding_mask": padding}
        found = [module(*inputs, average_attn_weights=averaged)]
        found.append(module(*inputs, **masks, need_weights=False))
        return (*found, module(*(part[:, 0] for part in inputs)))

    compare(ours, theirs, call)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_transformers(norm_first, batch_first, activation):
    ours, theirs = both(
        lambda nn: nn.Transformer(
            8, 2, 2, 2, 16, 0.0, activation, norm_first=norm_first, batch_first=batch_first
        )
    )

    def call(module, lib):
        source, target = (lib.from_numpy(data(3, 3, 8) * k) for k in (1, 2))
        mask = module.generate_square_subsequent_mask(3)
        return module(source, target, tgt_mask=mask, src_mask=mask)

    compare(ours, theirs, call)


def test_initial_values_of_transformers():
    gt.manual_seed(0)
    torch.manual_seed(0)
    ours = gt.nn.Transformer(64, 4, 1, 1, 256).state_dict()
    for name, theirs in torch.nn.Transformer(64, 4, 1, 1, 256).state_dict().items():
        mine = ours[name].numpy()
        share = 0.1 if mine.size > 1000 else 0.5
        assert abs(mine.std() - theirs.numpy().std()) < share * theirs.numpy().std() + 1e-6, name
