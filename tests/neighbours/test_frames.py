"""Columns of polars, pyarrow and pandas from tensors, and tensors from columns."""

import gt
import numpy as np
import pytest

DTYPES = "bool uint8 int8 int16 int32 int64 float16 float32 float64".split()


@pytest.fixture
def pl():
    return pytest.importorskip("polars", reason="polars is not installed: make test-all")


@pytest.fixture
def pa():
    return pytest.importorskip("pyarrow", reason="pyarrow is not installed: make test-all")


@pytest.fixture
def pd():
    return pytest.importorskip("pandas", reason="pandas is not installed: make test-all")


def column(dtype):
    return (np.arange(6) % 3).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_series_of_polars(pl, dtype):
    values = column(dtype)
    found = pl.Series("x", gt.tensor(values))
    assert found.name == "x"
    assert found.equals(pl.Series("x", values)) and found.dtype == pl.Series(values).dtype
    back = gt.tensor(found)
    assert back.dtype == dtype and np.array_equal(back.numpy(), values)


def test_series_take_a_dtype_and_rows(pl):
    rows = np.arange(6.0).reshape(2, 3)
    assert pl.Series(gt.tensor(rows)).to_list() == rows.tolist()
    assert pl.Series("x", gt.ones(2), dtype=pl.Float64).dtype == pl.Float64
    assert pl.Series("x", gt.ones(2).bfloat16()).to_list() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="requires grad"):
        pl.Series("x", gt.ones(2, requires_grad=True))


def test_frames_of_polars(pl):
    rows = np.arange(6.0).reshape(2, 3)
    x, y = gt.tensor([1.0, 2.0]), gt.tensor([3, 4], dtype=gt.int64)
    frame = pl.DataFrame({"x": x, "y": y, "rows": gt.tensor(rows)})
    assert frame.to_dict(as_series=False) == {
        "x": [1.0, 2.0],
        "y": [3, 4],
        "rows": rows.tolist(),
    }
    assert pl.DataFrame(gt.tensor(rows), schema=["a", "b", "c"]).rows() == [(0, 1, 2), (3, 4, 5)]
    assert frame.with_columns(z=x * 2)["z"].to_list() == [2.0, 4.0]
    assert pl.select(pl.lit(x)).to_series().to_list() == [1.0, 2.0]
    assert frame.filter(pl.col("x") > x.mean().item()).height == 1
    assert np.array_equal(gt.from_numpy(frame["x"].to_numpy()).numpy(), x.numpy())
    assert gt.tensor(frame.select("x", "y").to_numpy()).shape == (2, 2)


@pytest.mark.parametrize("first, second", [("gt", "polars"), ("polars", "gt")])
def test_polars_may_be_imported_first(pl, first, second):
    from processes import run_python

    code = f"import {first}, {second}; print(polars.Series('x', gt.ones(2)).to_list())"
    done = run_python(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[1.0, 1.0]\n", "")


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_arrow(pa, dtype):
    values = column(dtype)
    found = pa.array(gt.tensor(values))
    assert found.equals(pa.array(values))
    back = gt.tensor(found)
    assert back.dtype == dtype and np.array_equal(back.numpy(), values)


def test_tables_of_arrow(pa):
    x, rows = gt.tensor([1.0, 2.0]), gt.arange(12).reshape(2, 2, 3)
    table = pa.table({"x": x, "rows": rows})
    assert table.schema.field("x").type == pa.float32()
    assert table["rows"].to_pylist() == rows.tolist()
    assert table.schema.field("rows").type == pa.list_(pa.list_(pa.int64(), 3), 2)
    assert pa.array(x, type=pa.float64()).type == pa.float64()
    assert gt.tensor(table["x"]).tolist() == gt.from_numpy(table["x"].to_numpy()).tolist()
    assert gt.from_dlpack(pa.array([1.0, 2.0])).tolist() == [1.0, 2.0]
    assert gt.tensor(pa.Tensor.from_numpy(rows.numpy()).to_numpy()).shape == (2, 2, 3)
    assert pa.array(gt.zeros(0)).to_pylist() == []


def test_what_arrow_cannot_hold_is_named(pa):
    for x, what in [(gt.tensor(1.0), "without axes"), (gt.tensor([1j]), "of complex64")]:
        with pytest.raises(TypeError, match=f"pyarrow: a tensor {what} cannot be a column"):
            pa.array(x)
    with pytest.raises(RuntimeError, match="requires grad"):
        pa.array(gt.ones(2, requires_grad=True))


@pytest.mark.parametrize("dtype", DTYPES)
def test_series_of_pandas(pd, dtype):
    values = column(dtype)
    found = pd.Series(gt.tensor(values), name="x")
    pd.testing.assert_series_equal(found, pd.Series(values, name="x"))
    back = gt.tensor(found)
    assert back.dtype == dtype and np.array_equal(back.numpy(), values)


def test_frames_of_pandas(pd):
    x, y = gt.tensor([1.0, 2.0]), gt.tensor([3, 4], dtype=gt.int64)
    frame = pd.DataFrame({"x": x, "y": y})
    assert frame.dtypes.astype(str).to_dict() == {"x": "float32", "y": "int64"}
    frame["z"] = x * 2
    frame.loc[0, "z"] = x[1].item()
    assert frame["z"].tolist() == [2.0, 4.0]
    assert frame.assign(w=y).iloc[y[:1] - 3]["w"].tolist() == [3]
    assert gt.tensor(frame.to_numpy(), dtype=gt.float32).shape == (2, 3)
    assert gt.tensor(frame["y"].values).dtype == gt.int64
    rows = pd.DataFrame(gt.arange(4).reshape(2, 2), columns=["a", "b"])
    assert rows["b"].tolist() == [1, 3]
    assert pd.DataFrame([{"loss": x.mean().item(), "step": 1}])["loss"].mean() == 1.5
