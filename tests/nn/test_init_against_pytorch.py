"""Initial values: exact ones equal PyTorch's, random ones have the same distribution."""

import gt
import numpy as np
import pytest

torch = pytest.importorskip("torch")
stats = pytest.importorskip("scipy.stats")

RANDOM = [
    ("uniform_", (40, 50), (-1.0, 2.0)),
    ("normal_", (40, 50), (1.0, 2.0)),
    ("trunc_normal_", (40, 50), (0.5, 1.0, -1.0, 1.0)),
    ("xavier_uniform_", (40, 50), (2.0,)),
    ("xavier_normal_", (40, 10, 3, 3), ()),
    ("kaiming_uniform_", (40, 50), (0.3, "fan_out")),
    ("kaiming_normal_", (40, 50), (0, "fan_in", "relu")),
]


@pytest.mark.parametrize(("name", "shape", "options"), RANDOM)
def test_random_values_have_the_same_distribution(name, shape, options):
    torch.manual_seed(0)
    parameter = gt.nn.Parameter(gt.zeros(*shape))
    assert getattr(gt.nn.init, name)(parameter, *options) is parameter
    theirs = getattr(torch.nn.init, name)(torch.zeros(*shape), *options)
    test = stats.ks_2samp(parameter.detach().numpy().ravel(), theirs.numpy().ravel())
    assert test.pvalue > 1e-3
    one, other = (
        getattr(gt.nn.init, name)(gt.zeros(*shape), *options, generator=g.manual_seed(3))
        for g in (gt.Generator(), gt.Generator())
    )
    assert one.tolist() == other.tolist()


@pytest.mark.parametrize(
    ("name", "shape", "options"),
    [
        ("constant_", (2, 3), (3.5,)),
        ("ones_", (2, 3), ()),
        ("zeros_", (2, 3), ()),
        ("eye_", (3, 5), ()),
        ("dirac_", (6, 2, 3), ()),
        ("dirac_", (6, 2, 3, 3), (3,)),
        ("dirac_", (4, 4, 1, 2, 3), (2,)),
    ],
)
def test_exact_values(name, shape, options):
    ours = getattr(gt.nn.init, name)(gt.randn(*shape), *options)
    theirs = getattr(torch.nn.init, name)(torch.randn(*shape), *options)
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def test_orthogonal_and_sparse():
    for shape in ((5, 3), (3, 5), (4, 2, 3)):
        flat = gt.nn.init.orthogonal_(gt.zeros(*shape), 2.0).reshape(shape[0], -1).numpy()
        gram = flat @ flat.T if flat.shape[0] <= flat.shape[1] else flat.T @ flat
        np.testing.assert_allclose(gram, 4 * np.eye(len(gram)), atol=1e-4)
    sparse = gt.nn.init.sparse_(gt.zeros(50, 4), 0.25, 2.0).numpy()
    assert ((sparse == 0).sum(0) == 13).all() and 1.5 < sparse[sparse != 0].std() < 2.5


def test_gains():
    for name in ("linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu"):
        assert gt.nn.init.calculate_gain(name) == torch.nn.init.calculate_gain(name)
    assert gt.nn.init.calculate_gain("leaky_relu", 0.3) == torch.nn.init.calculate_gain(
        "leaky_relu", 0.3
    )
    fans = "_calculate_fan_in_and_fan_out"
    assert getattr(gt.nn.init, fans)(gt.zeros(4, 3, 2)) == (6, 8)


@pytest.mark.parametrize(
    "mistake",
    [
        lambda lib: lib.nn.init.calculate_gain("x"),
        lambda lib: lib.nn.init.calculate_gain("leaky_relu", "x"),
        lambda lib: lib.nn.init.xavier_uniform_(lib.ones(3)),
        lambda lib: lib.nn.init.kaiming_normal_(lib.ones(3, 3), mode="x"),
        lambda lib: lib.nn.init.eye_(lib.ones(3)),
        lambda lib: lib.nn.init.dirac_(lib.ones(3, 3)),
        lambda lib: lib.nn.init.dirac_(lib.ones(3, 3, 3), 2),
        lambda lib: lib.nn.init.orthogonal_(lib.ones(3)),
        lambda lib: lib.nn.init.sparse_(lib.ones(3), 0.1),
    ],
)
def test_mistakes_raise_the_same_errors(mistake):
    for lib in (gt, torch):
        with pytest.raises(ValueError):  # noqa: PT011
            mistake(lib)


def test_older_names_warn():
    with pytest.warns(FutureWarning, match="deprecated in favor"):
        gt.nn.init.xavier_normal(gt.zeros(2, 3))
