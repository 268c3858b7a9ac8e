"""Constraints, compared with PyTorch's."""

import gt
import numpy as np
import pytest
from distribution_cases import COVARIANCE, FACTOR, GT, TORCH
from pytorch import check, to_gt, torch

NUMBERS = [-2.0, -1.0, -0.5, 0.0, 0.3, 1.0, 1.5, 2.0, 3.0, float("inf"), float("nan")]
VECTORS = [[0.2, 0.8], [1.0, 0.0], [0.5, 0.6], [-0.5, 1.5], [1.0, 2.0], [0.0, 0.0]]
NORMED = (np.array(FACTOR) / np.linalg.norm(FACTOR, axis=-1, keepdims=True)).tolist()
MATRICES = [
    FACTOR,
    NORMED,
    COVARIANCE,
    np.eye(3).tolist(),
    (-np.eye(3)).tolist(),
    np.diag([1.0, 0.0, 1.0]).tolist(),
    np.arange(9.0).reshape(3, 3).tolist(),
]

CONSTRAINTS = {
    "boolean": (lambda c: c.boolean, NUMBERS),
    "real": (lambda c: c.real, NUMBERS),
    "positive": (lambda c: c.positive, NUMBERS),
    "nonnegative": (lambda c: c.nonnegative, NUMBERS),
    "nonnegative_integer": (lambda c: c.nonnegative_integer, NUMBERS),
    "positive_integer": (lambda c: c.positive_integer, NUMBERS),
    "integer_interval": (lambda c: c.integer_interval(0, 2), NUMBERS),
    "greater_than": (lambda c: c.greater_than(0.3), NUMBERS),
    "greater_than_eq": (lambda c: c.greater_than_eq(1.0), NUMBERS),
    "less_than": (lambda c: c.less_than(1.0), NUMBERS),
    "interval": (lambda c: c.interval(-1.0, 1.0), NUMBERS),
    "half_open_interval": (lambda c: c.half_open_interval(-1.0, 1.0), NUMBERS),
    "unit_interval": (lambda c: c.unit_interval, NUMBERS),
    "one_hot": (lambda c: c.one_hot, VECTORS),
    "simplex": (lambda c: c.simplex, VECTORS),
    "multinomial": (lambda c: c.multinomial(2), VECTORS),
    "real_vector": (lambda c: c.real_vector, VECTORS),
    "independent": (lambda c: c.independent(c.positive, 1), VECTORS),
    "cat": (lambda c: c.cat([c.positive, c.unit_interval], -1), VECTORS),
    "stack": (lambda c: c.stack([c.positive, c.integer_interval(0, 1)], -1), VECTORS),
    "mixture": (lambda c: c.MixtureSameFamilyConstraint(c.positive), NUMBERS),
    "lower_triangular": (lambda c: c.lower_triangular, MATRICES),
    "lower_cholesky": (lambda c: c.lower_cholesky, MATRICES),
    "corr_cholesky": (lambda c: c.corr_cholesky, MATRICES),
    "square": (lambda c: c.square, MATRICES),
    "positive_semidefinite": (lambda c: c.positive_semidefinite, MATRICES),
    "symmetric": (lambda c: c.symmetric, MATRICES),
    "positive_definite": (lambda c: c.positive_definite, MATRICES),
}


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_checks(name):
    of, values = CONSTRAINTS[name]
    ours, theirs = of(GT.constraints), of(TORCH.constraints)
    # PyTorch's symmetric check fails for a whole batch if one matrix fails: check one at a time.
    given = values if values is MATRICES else [values]
    for value in given:
        value = torch.tensor(value, dtype=torch.float64)
        check(ours.check(to_gt(value)), theirs.check(value), name)
    assert ours.event_dim == theirs.event_dim
    assert ours.is_discrete == theirs.is_discrete
    if name not in ("cat", "stack"):
        assert (
            repr(ours).replace("IndependentConstraint", "Independent").split("(")[0]
            == (repr(theirs).replace("IndependentConstraint", "Independent").split("(")[0])
        )


def test_matrices_in_a_batch():
    both = gt.tensor([COVARIANCE, np.arange(9.0).reshape(3, 3).tolist()])
    for name in ("symmetric", "positive_definite", "positive_semidefinite"):
        assert getattr(GT.constraints, name).check(both).tolist() == [True, False]
    wide = gt.zeros(2, 3, 4)
    for name in ("square", "symmetric", "positive_definite", "positive_semidefinite"):
        assert getattr(GT.constraints, name).check(wide).tolist() == [False, False]


def test_dependent_constraints():
    c = GT.constraints
    assert c.is_dependent(c.dependent) and not c.is_dependent(c.real)
    assert c.is_dependent(GT.Uniform.support)
    assert GT.Uniform.support.event_dim == 0
    assert c.dependent(is_discrete=True, event_dim=1).event_dim == 1
    with pytest.raises(NotImplementedError, match="event_dim"):
        _ = c.dependent.event_dim
    with pytest.raises(NotImplementedError, match="is_discrete"):
        _ = c.dependent.is_discrete
    with pytest.raises(ValueError, match="dependent"):
        c.dependent.check(gt.ones(1))


def test_mistakes():
    c = GT.constraints
    with pytest.raises(AssertionError, match="Constraint"):
        c.independent(3, 1)
    with pytest.raises(AssertionError, match="reinterpreted_batch_ndims"):
        c.independent(c.real, -1)
    with pytest.raises(ValueError, match="dim"):
        c.independent(c.real, 2).check(gt.ones(1))
    with pytest.raises(AssertionError, match="match"):
        c.cat([c.real], lengths=[1, 2])
    with pytest.raises(AssertionError, match="out of range"):
        c.stack([c.real], dim=3).check(gt.ones(1))
