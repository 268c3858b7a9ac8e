"""Values to and from other array libraries, pickles and files."""

import importlib.util
import pickle

import gt
import numpy as np
import pytest
from processes import run_python

ROWS = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


def test_torch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
    x = gt.tensor(ROWS)
    for found in (torch.as_tensor(x), torch.from_dlpack(x), torch.from_numpy(x.numpy())):
        assert isinstance(found, torch.Tensor) and np.array_equal(found.numpy(), ROWS)
    theirs = torch.tensor(ROWS)
    for found in (gt.tensor(theirs), gt.as_tensor(theirs), gt.from_dlpack(theirs)):
        assert isinstance(found, gt.Tensor) and np.array_equal(found.numpy(), ROWS)


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_bfloat16_keeps_its_bits(name):
    """Through DLPack, also of transposed tensors: NumPy, which carries the others, lacks it."""
    pytest.importorskip(name, reason=f"{name} is not installed: make test-all")
    if name == "torch":
        import torch

        theirs, read = torch.tensor(ROWS).bfloat16().T, torch.from_dlpack
    else:
        import jax.numpy as jnp

        theirs, read = jnp.asarray(ROWS, dtype=jnp.bfloat16).T, jnp.from_dlpack
    ours = gt.from_dlpack(theirs)
    assert ours.dtype == gt.bfloat16
    assert ours.equal(gt.tensor(ROWS).bfloat16().T)
    again = gt.from_dlpack(read(ours))
    assert again.dtype == gt.bfloat16 and again.equal(ours)


def test_dtypes_that_gt_lacks_are_refused():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
    with pytest.raises(RuntimeError, match="Unsupported dtype"):
        gt.from_dlpack(torch.ones(2, dtype=torch.float8_e4m3fn))


def test_jax():
    jax = pytest.importorskip("jax", reason="JAX is not installed: make test-all")
    x = gt.tensor(ROWS)
    for found in (jax.numpy.asarray(x), jax.numpy.from_dlpack(x)):
        assert isinstance(found, jax.Array) and np.array_equal(found, ROWS)
    for found in (gt.tensor(jax.numpy.asarray(ROWS)), gt.from_dlpack(jax.numpy.asarray(ROWS))):
        assert np.array_equal(found.numpy(), ROWS)
    assert jax.tree.map(lambda v: (v * 2).tolist(), {"a": gt.ones(1)}) == {"a": [2.0]}


NUMBA = """
import gt, numba, numpy as np

@numba.njit
def total(values):
    found = 0.0
    for value in values:
        found += value
    return found

row = gt.arange(5).double()
print(total(row.numpy()), total(np.asarray(row)))
"""


def test_numba():
    """In a process of its own: numba imports `coverage`, as a folder of tests is named, too."""
    if importlib.util.find_spec("numba") is None:
        pytest.skip("numba: make test-neighbours")
    done = run_python(NUMBA)
    assert (done.returncode, done.stdout, done.stderr) == (0, "10.0 10.0\n", "")


def test_xarray():
    xarray = pytest.importorskip("xarray", reason="xarray: make test-neighbours")
    table = xarray.DataArray(gt.tensor(ROWS), dims=("row", "column"))
    assert np.array_equal(table.values, ROWS)
    np.testing.assert_allclose(table.mean("row").values, ROWS.mean(0), rtol=1e-6)
    assert np.array_equal(gt.tensor(table).numpy(), ROWS)


def test_files_of_hdf5(tmp_path):
    h5py = pytest.importorskip("h5py", reason="h5py: make test-neighbours")
    with h5py.File(tmp_path / "values.h5", "w") as file:
        file["rows"] = gt.tensor(ROWS)
        written = file.create_dataset("written", shape=(2, 4), dtype="float32")
        written[1] = gt.tensor(ROWS)[2]
        file.attrs["loss"] = gt.tensor(1.5)
    with h5py.File(tmp_path / "values.h5") as file:
        assert gt.tensor(file["rows"]).equal(gt.tensor(ROWS))
        assert gt.from_numpy(file["written"][1]).equal(gt.tensor(ROWS)[2])
        assert file.attrs["loss"] == 1.5


def test_files_of_safetensors():
    library = pytest.importorskip("safetensors.numpy", reason="safetensors: make test-all")
    data = library.save({"rows": gt.tensor(ROWS).numpy()})
    assert gt.from_numpy(library.load(data)["rows"]).equal(gt.tensor(ROWS))


def test_graphs_of_networkx():
    networkx = pytest.importorskip("networkx", reason="networkx comes with PyTorch: make test-all")
    matrix = gt.tensor([[0.0, 2.0, 0.0], [2.0, 0.0, 3.0], [0.0, 3.0, 0.0]])
    graph = networkx.from_numpy_array(matrix.numpy())
    assert networkx.shortest_path_length(graph, 0, 2, weight="weight") == 5.0
    assert gt.tensor(networkx.to_numpy_array(graph)).float().equal(matrix)
    edges = gt.tensor(list(graph.edges), dtype=gt.int64)
    assert edges.T.tolist() == [[0, 1], [1, 2]]


class Model(gt.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = gt.nn.Linear(4, 2)

    def forward(self, x):
        return self.layer(x).relu()


@pytest.mark.parametrize("name", ["pickle", "cloudpickle", "dill"])
def test_pickles(name):
    library = pytest.importorskip(name, reason=f"{name}: make test-neighbours")
    x = gt.tensor(ROWS)
    for value in (x, x.bfloat16(), gt.tensor([1, 2], dtype=gt.int64)):
        again = pickle.loads(library.dumps(value))
        assert again.dtype == value.dtype and again.equal(value)
    model = Model()
    assert pickle.loads(library.dumps(model))(x).equal(model(x))


def test_closures_are_pickled():
    cloudpickle = pytest.importorskip("cloudpickle", reason="cloudpickle: make test-neighbours")
    x = gt.tensor(ROWS)

    class Local(gt.nn.Module):
        def forward(self, y):
            return y + x

    assert pickle.loads(cloudpickle.dumps(Local()))(x).equal(x * 2)


def test_joblib(tmp_path):
    joblib = pytest.importorskip("joblib", reason="joblib comes with scikit-learn: make test-all")
    x = gt.tensor(ROWS)
    joblib.dump({"x": x}, tmp_path / "x")
    assert joblib.load(tmp_path / "x")["x"].equal(x)
    assert joblib.hash(x) == joblib.hash(gt.tensor(ROWS)) != joblib.hash(x + 1)
    doubled = joblib.Parallel(2, prefer="threads")(joblib.delayed(gt.mul)(row, 2) for row in x)
    assert gt.stack(doubled).equal(x * 2)
