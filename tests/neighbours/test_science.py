"""scikit-learn and SciPy compute the same from tensors as from arrays."""

import gt
import numpy as np
import pytest

DRAW = np.random.default_rng(0)
INPUTS = DRAW.standard_normal((60, 3))
TARGETS = (INPUTS[:, 0] + 0.5 * INPUTS[:, 1] > 0).astype(np.int64)


@pytest.fixture
def sklearn():
    sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed: make test-all")
    from sklearn import (  # noqa: F401
        cluster,
        decomposition,
        ensemble,
        linear_model,
        metrics,
        model_selection,
        neighbors,
        preprocessing,
    )

    return sklearn


MODELS = {
    "LogisticRegression": lambda s: s.linear_model.LogisticRegression(),
    "Ridge": lambda s: s.linear_model.Ridge(),
    "RandomForest": lambda s: s.ensemble.RandomForestClassifier(5, random_state=0),
    "KNeighbors": lambda s: s.neighbors.KNeighborsClassifier(3),
    "KMeans": lambda s: s.cluster.KMeans(2, n_init=1, random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_fit_and_predict(name, sklearn):
    found = MODELS[name](sklearn).fit(gt.tensor(INPUTS), gt.tensor(TARGETS))
    expected = MODELS[name](sklearn).fit(INPUTS, TARGETS)
    np.testing.assert_allclose(found.predict(gt.tensor(INPUTS)), expected.predict(INPUTS))


@pytest.mark.parametrize("name", ["PCA", "StandardScaler"])
def test_inputs_are_transformed(name, sklearn):
    kind = getattr(sklearn.decomposition, name, None) or getattr(sklearn.preprocessing, name)
    found = kind().fit_transform(gt.tensor(INPUTS))
    np.testing.assert_allclose(found, kind().fit_transform(INPUTS), rtol=1e-6)


def test_data_is_split(sklearn):
    split = sklearn.model_selection.train_test_split
    found = split(
        gt.tensor(INPUTS), gt.tensor(TARGETS), stratify=gt.tensor(TARGETS), random_state=0
    )
    assert all(isinstance(part, gt.Tensor) for part in found)
    expected = split(INPUTS, TARGETS, stratify=TARGETS, random_state=0)
    for part, of_array in zip(found, expected, strict=True):
        assert np.array_equal(part.numpy(), of_array)
    train, _ = next(sklearn.model_selection.KFold(3).split(gt.tensor(INPUTS)))
    assert gt.tensor(INPUTS)[train].shape == (40, 3)


METRICS = {
    "accuracy_score": (TARGETS, 1 - TARGETS),
    "f1_score": (TARGETS, TARGETS),
    "confusion_matrix": (TARGETS, TARGETS),
    "roc_auc_score": (TARGETS, INPUTS[:, 0]),
    "average_precision_score": (TARGETS, INPUTS[:, 1]),
    "mean_squared_error": (INPUTS[:, 0], INPUTS[:, 1]),
    "r2_score": (INPUTS[:, 0], INPUTS[:, 1]),
    "silhouette_score": (INPUTS, TARGETS),
}


@pytest.mark.parametrize("name", METRICS)
def test_metrics(name, sklearn):
    metric = getattr(sklearn.metrics, name)
    np.testing.assert_allclose(metric(*map(gt.tensor, METRICS[name])), metric(*METRICS[name]))


def test_a_history_is_refused(sklearn):
    with pytest.raises(RuntimeError, match="requires grad"):
        sklearn.linear_model.Ridge().fit(gt.tensor(INPUTS, requires_grad=True), TARGETS)


@pytest.fixture
def scipy():
    scipy = pytest.importorskip("scipy", reason="SciPy is not installed: make test-all")
    from scipy import optimize, signal, spatial, special, stats  # noqa: F401

    return scipy


def test_a_loss_is_minimized(scipy):
    """By its value and gradient, from numbers and from tensors."""

    def loss(point):
        x = gt.tensor(point, requires_grad=True)
        value = ((x - gt.tensor([1.0, 2.0])) ** 2).sum()
        value.backward()
        return value.detach(), x.grad

    for start in (np.zeros(2), gt.zeros(2)):
        done = scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B")
        np.testing.assert_allclose(done.x, [1.0, 2.0], atol=1e-5)
    root = scipy.optimize.brentq(lambda x: gt.tensor(x) ** 2 - 2, 0, 2)
    assert root == pytest.approx(2**0.5, abs=1e-6)


SCIPY = {
    "stats.pearsonr": (INPUTS[:, 0], INPUTS[:, 1]),
    "stats.spearmanr": (INPUTS[:, 0], INPUTS[:, 1]),
    "stats.ttest_ind": (INPUTS[:, 0], INPUTS[:, 1]),
    "stats.zscore": (INPUTS[:, 0],),
    "special.softmax": (INPUTS,),
    "special.erf": (INPUTS,),
    "spatial.distance.cdist": (INPUTS, INPUTS),
    "optimize.linear_sum_assignment": (INPUTS[:3],),
    "signal.convolve": (INPUTS[:, 0], INPUTS[:3, 1]),
}


@pytest.mark.parametrize("name", SCIPY)
def test_functions_of_scipy(name, scipy):
    function = scipy
    for part in name.split("."):
        function = getattr(function, part)
    found, expected = function(*map(gt.tensor, SCIPY[name])), function(*SCIPY[name])
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-6)
