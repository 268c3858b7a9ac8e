"""Transforms and their registries, compared with PyTorch's."""

import copy
import pickle

import gt
import numpy as np
import pytest
from distribution_cases import GT, TORCH, Maker
from pytorch import check, draw, to_gt, torch

#: A transform and the shape of its input.
TRANSFORMS = {
    "Abs": (lambda D, t: D.AbsTransform(), (3,)),
    "Affine": (lambda D, t: D.AffineTransform(t([1.0, 0.5]), t([-2.0, 3.0])), (3, 2)),
    "Affine numbers": (lambda D, t: D.AffineTransform(1.0, -2.0), (3, 2)),
    "Affine events": (lambda D, t: D.AffineTransform(t([1.0]), t([2.0, 3.0]), event_dim=1), (3, 2)),
    "Affine number events": (lambda D, t: D.AffineTransform(1.0, 2.0, event_dim=2), (4, 3, 2)),
    "Cat": (
        lambda D, t: D.CatTransform([D.ExpTransform(), D.AffineTransform(1.0, 2.0)], -1, [2, 3]),
        (4, 5),
    ),
    "Cat of events": (
        lambda D, t: D.CatTransform([D.SoftmaxTransform(), D.SoftmaxTransform()], -1, [2, 3]),
        (4, 5),
    ),
    "Compose": (
        lambda D, t: D.ComposeTransform(
            [D.AffineTransform(t([0.3]), t([0.5])), D.SigmoidTransform(), D.PowerTransform(t(2.0))]
        ),
        (3, 2),
    ),
    "Compose events": (
        lambda D, t: D.ComposeTransform([D.StickBreakingTransform(), D.ExpTransform()]),
        (3, 2),
    ),
    "Compose nothing": (lambda D, t: D.ComposeTransform([]), (3,)),
    "CorrCholesky": (lambda D, t: D.CorrCholeskyTransform(), (4, 6)),
    "CorrCholesky of one": (lambda D, t: D.CorrCholeskyTransform(), (4, 1)),
    "CumulativeDistribution": (
        lambda D, t: D.CumulativeDistributionTransform(D.Normal(t([0.3, 1.0]), t([1.0, 2.0]))),
        (3, 2),
    ),
    "Exp": (lambda D, t: D.ExpTransform(), (3,)),
    "Exp inverse": (lambda D, t: D.ExpTransform().inv.inv, (3,)),
    "Independent": (lambda D, t: D.IndependentTransform(D.ExpTransform(), 1), (3, 2)),
    "LowerCholesky": (lambda D, t: D.LowerCholeskyTransform(), (2, 3, 3)),
    "PositiveDefinite": (lambda D, t: D.PositiveDefiniteTransform(), (2, 3, 3)),
    "Reshape": (lambda D, t: D.ReshapeTransform((2, 3), (6,)), (4, 2, 3)),
    "Sigmoid": (lambda D, t: D.SigmoidTransform(), (3,)),
    "Softmax": (lambda D, t: D.SoftmaxTransform(), (2, 3)),
    "Softplus": (lambda D, t: D.SoftplusTransform(), (3,)),
    "Stack": (
        lambda D, t: D.StackTransform(
            [D.ExpTransform(), D.TanhTransform(), D.SigmoidTransform()], 1
        ),
        (4, 3),
    ),
    "StickBreaking": (lambda D, t: D.StickBreakingTransform(), (3, 4)),
    "Tanh": (lambda D, t: D.TanhTransform(), (3,)),
}


def both(name):
    make, shape = TRANSFORMS[name]
    x = draw(5, *shape, dtype="float64", low=-1.5, high=1.5)
    return make(GT, Maker(gt)), make(TORCH, Maker(torch)), x


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    ours, theirs, x = both(name)
    x = x.requires_grad_()
    mine = to_gt(x)
    y, want = ours(mine), theirs(x)
    check(y, want, name, 10)
    check(ours.inv(y), theirs.inv(want), name, 1e3)
    want.square().sum().backward(retain_graph=True)
    y.square().sum().backward(retain_graph=True)
    check(mine.grad, x.grad, name, 100)
    assert tuple(ours.forward_shape(x.shape)) == tuple(want.shape)
    assert tuple(ours.inverse_shape(want.shape)) == tuple(theirs.inverse_shape(want.shape))
    assert bool(ours.bijective) == bool(theirs.bijective)
    assert ours.domain.event_dim == theirs.domain.event_dim
    assert ours.codomain.event_dim == theirs.codomain.event_dim
    assert repr(ours).split("(")[0] == repr(theirs).split("(")[0]
    try:
        want_log = theirs.log_abs_det_jacobian(x, want)
    except NotImplementedError:
        with pytest.raises(NotImplementedError):
            ours.log_abs_det_jacobian(mine, y)
        return
    got_log = ours.log_abs_det_jacobian(mine, y)
    check(got_log, want_log, name, 100)
    check(ours.inv.log_abs_det_jacobian(y, mine), -want_log, name, 100)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_caches(name):
    ours, _, x = both(name)
    cached = ours.with_cache(1)
    assert cached.with_cache(1) is cached
    x = to_gt(x)
    y = cached(x)
    assert cached(x) is y or name == "Compose nothing"
    if name != "Compose nothing":
        assert cached.inv(y) is x or name.startswith(("Cat", "Stack"))
    np.testing.assert_array_equal(y.detach().numpy(), ours(x).detach().numpy())
    assert ours.inv.inv is ours
    assert cached.with_cache(0)._cache_size == 0


@pytest.mark.parametrize(
    "name", ["Tanh", "Sigmoid", "Softplus", "Exp", "Affine numbers", "StickBreaking"]
)
def test_determinants_are_those_of_gradients(name):
    ours, _, x = both(name)
    if name == "StickBreaking":
        x = to_gt(x[0])
        jacobian = gt.autograd.functional.jacobian(lambda x: ours(x)[:-1], x).numpy()
        want = np.log(np.abs(np.linalg.det(jacobian)))
    else:
        x = to_gt(x).requires_grad_()
        ours(x).sum().backward()
        want = np.log(np.abs(x.grad.numpy()))
    got = ours.log_abs_det_jacobian(x, ours(x)).detach().numpy()
    np.testing.assert_allclose(got, want, rtol=1e-10)


def test_signs():
    for name in ("Exp", "Tanh", "Affine", "Affine numbers", "Compose", "Independent"):
        ours, theirs, _ = both(name)
        want = theirs.sign
        got = ours.sign
        if isinstance(want, int):
            assert got == want, name
        else:
            check(got, want, name)
        assert repr(ours.inv.sign) == repr(got)
    with pytest.raises(NotImplementedError):
        _ = GT.AbsTransform().sign


def test_equality():
    for name in TRANSFORMS:
        (one, theirs, _), (other, their_other, _) = both(name), both(name)
        assert (one == other) == (theirs == their_other), name
        assert one == one and (one.inv == other.inv) == (theirs.inv == their_other.inv)
    assert GT.AffineTransform(0.0, 1.0) != GT.AffineTransform(0.0, 2.0)
    assert GT.PowerTransform(2.0) == GT.PowerTransform(gt.tensor(2.0))
    assert GT.ExpTransform() != GT.SigmoidTransform()


def test_copies():
    transform = GT.AffineTransform(1.0, 2.0)
    assert transform.inv.inv is transform
    for again in (copy.deepcopy(transform), pickle.loads(pickle.dumps(transform))):
        assert again == transform


def test_mistakes():
    x = gt.zeros(3)
    with pytest.raises(ValueError, match="cache_size"):
        GT.ExpTransform(cache_size=2)
    with pytest.raises(ValueError, match="different numbers"):
        GT.ReshapeTransform((2,), (3,))
    with pytest.raises(ValueError, match="Shape mismatch"):
        GT.ReshapeTransform((2,), (2, 1))(x)
    with pytest.raises(ValueError, match="lower-diagonal"):
        GT.CorrCholeskyTransform().forward_shape((5,))
    with pytest.raises(ValueError, match="square"):
        GT.CorrCholeskyTransform().inverse_shape((2, 3))
    with pytest.raises(ValueError, match="Too few dimensions"):
        GT.StickBreakingTransform().forward_shape(())
    with pytest.raises(ValueError, match="Too few dimensions"):
        GT.IndependentTransform(GT.ExpTransform(), 2)(x)
    with pytest.raises(AssertionError, match="length 3"):
        GT.CatTransform([GT.ExpTransform()])(x)
    with pytest.raises(AssertionError, match="Transform instances"):
        GT.StackTransform([1])
    with pytest.raises(ValueError, match="event_dim"):
        _ = GT.ReshapeTransform((2, 3), (6,)).event_dim


#: A constraint, and the shape of the unconstrained input mapped to it.
REGIONS = {
    "real": (lambda c: c.real, (3,)),
    "positive": (lambda c: c.positive, (3,)),
    "nonnegative": (lambda c: c.nonnegative, (3,)),
    "greater_than": (lambda c: c.greater_than(2.0), (3,)),
    "greater_than_eq": (lambda c: c.greater_than_eq(-1.0), (3,)),
    "less_than": (lambda c: c.less_than(2.0), (3,)),
    "interval": (lambda c: c.interval(-1.0, 3.0), (3,)),
    "half_open_interval": (lambda c: c.half_open_interval(-1.0, 3.0), (3,)),
    "unit_interval": (lambda c: c.unit_interval, (3,)),
    "simplex": (lambda c: c.simplex, (2, 3)),
    "real_vector": (lambda c: c.real_vector, (2, 3)),
    "independent": (lambda c: c.independent(c.positive, 1), (2, 3)),
    "lower_cholesky": (lambda c: c.lower_cholesky, (2, 3, 3)),
    "positive_definite": (lambda c: c.positive_definite, (2, 3, 3)),
    "positive_semidefinite": (lambda c: c.positive_semidefinite, (2, 3, 3)),
    "corr_cholesky": (lambda c: c.corr_cholesky, (2, 6)),
    "cat": (lambda c: c.cat([c.positive, c.unit_interval], -1, [1, 2]), (2, 3)),
    "stack": (lambda c: c.stack([c.positive, c.real, c.less_than(1.0)], -1), (2, 3)),
}


@pytest.mark.parametrize("name", REGIONS)
@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
def test_registries(registry, name):
    of, shape = REGIONS[name]
    x = draw(7, *shape, dtype="float64", low=-2, high=2)
    try:
        want = getattr(TORCH, registry)(of(TORCH.constraints))(x)
    except NotImplementedError:
        with pytest.raises(NotImplementedError, match="Cannot transform"):
            getattr(GT, registry)(of(GT.constraints))
        return
    constraint = of(GT.constraints)
    transform = getattr(GT, registry)(constraint)
    got = transform(to_gt(x))
    check(got, want, name, 10)
    assert bool(constraint.check(got).all())
    if registry == "biject_to":
        assert transform.bijective
        check(transform.inv(got), x, name, 1e3)


def test_registering():
    registry = GT.constraint_registry.ConstraintRegistry()

    class Own(GT.constraints.Constraint):
        pass

    @registry.register(Own)
    def _to_own(constraint):
        return GT.ExpTransform()

    assert registry(Own()) == GT.ExpTransform()
    assert registry.register(GT.constraints.boolean, _to_own) is _to_own
    with pytest.raises(TypeError, match="Constraint"):
        registry.register(3, _to_own)
    with pytest.raises(NotImplementedError, match="Real"):
        registry(GT.constraints.real)
