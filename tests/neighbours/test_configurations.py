"""Libraries around a training program: progress bars, consoles, configurations, annotations."""

import collections
import io

import gt
import pytest


def test_sequences_of_other_types_make_tensors():
    """As in PyTorch."""
    rows = collections.deque([collections.deque([1, 2]), [3, 4]])
    for make in (gt.tensor, gt.as_tensor, gt.asarray):
        assert make(rows).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert gt.tensor(collections.deque([gt.tensor(1.0)])).tolist() == [1.0]
    for wrong in ("ab", ["a"], collections.deque(["a"]), {1: 2}, [None]):
        with pytest.raises(TypeError, match="a tensor is made from numbers"):
            gt.tensor(wrong)


@pytest.fixture
def create():
    omegaconf = pytest.importorskip("omegaconf", reason="omegaconf: make test-neighbours")
    return omegaconf.OmegaConf.create


def test_configurations_of_omegaconf(create, tmp_path):
    config = create({"lr": 0.1, "betas": [0.8, 0.9], "shape": [2, 3], "rows": [[1, 2], [3, 4]]})
    assert gt.zeros(*config.shape).shape == gt.zeros(6).reshape(config.shape).shape == (2, 3)
    assert gt.tensor(config.rows).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    weight = gt.nn.Parameter(gt.ones(2))
    optimizer = gt.optim.AdamW([weight], lr=config.lr, betas=config.betas)
    assert optimizer.param_groups[0]["betas"] == (0.8, 0.9)
    gt.save(optimizer.state_dict(), tmp_path / "state")
    assert create({"loss": float(weight.sum())}).loss == 2.0


def test_objects_of_hydra(create):
    utils = pytest.importorskip("hydra.utils", reason="hydra: make test-neighbours")
    config = create(
        {
            "model": {
                "_target_": "gt.nn.Sequential",
                "_args_": [
                    {"_target_": "gt.nn.Linear", "in_features": 2, "out_features": 3},
                    {"_target_": "gt.nn.ReLU"},
                ],
            },
            "optimizer": {"_target_": "gt.optim.Adam", "_partial_": True, "betas": [0.8, 0.9]},
            "input": {"_target_": "gt.tensor", "data": [1.0, 2.0]},
        }
    )
    model = utils.instantiate(config.model)
    assert model(utils.instantiate(config.input)).shape == (3,)
    optimizer = utils.instantiate(config.optimizer)(model.parameters())
    assert type(optimizer) is gt.optim.Adam
    assert utils.get_method("gt.nn.functional.relu")(gt.tensor(-1.0)).item() == 0.0


def test_progress_bars():
    tqdm = pytest.importorskip("tqdm", reason="tqdm is not installed: pip install tqdm").tqdm
    text = io.StringIO()
    with tqdm(gt.arange(3), file=text, mininterval=0) as bar:
        for each in bar:
            bar.set_postfix(loss=f"{gt.tensor(1.5):.2f}", step=each.item())
            bar.set_description(f"{each:d}")
    assert "2: 100%" in text.getvalue() and "loss=1.50, step=2" in text.getvalue()
    assert tqdm(total=gt.tensor(10, dtype=gt.int64), disable=True).total == 10


def test_consoles():
    console = pytest.importorskip("rich.console", reason="rich: make docs")
    out = console.Console(file=io.StringIO(), width=80)
    out.print({"loss": gt.tensor(1.5)}, gt.nn.Linear(2, 1))
    assert "{'loss': tensor(1.5, dtype=float32)}" in out.file.getvalue()
    assert "Linear(in_features=2, out_features=1, bias=True)" in out.file.getvalue()


def test_annotations():
    jaxtyping = pytest.importorskip("jaxtyping", reason="jaxtyping: make test-neighbours")
    beartype = pytest.importorskip("beartype", reason="beartype: make test-neighbours")
    Float, Int = jaxtyping.Float, jaxtyping.Int
    x = gt.ones(2, 3)
    assert isinstance(x, Float[gt.Tensor, "b c"]) and isinstance(
        x, jaxtyping.Float32[gt.Tensor, "2 3"]
    )
    assert not isinstance(x, Int[gt.Tensor, "b c"]) and not isinstance(x, Float[gt.Tensor, "b"])
    assert isinstance(x.bfloat16(), jaxtyping.BFloat16[gt.Tensor, "b c"])
    assert isinstance(gt.nn.Parameter(x), Float[gt.Tensor, "b c"])

    Rows, Row = Float[gt.Tensor, "b c"], Float[gt.Tensor, "c"]

    @jaxtyping.jaxtyped(typechecker=beartype.beartype)
    def product(x: Rows, y: Row) -> gt.Tensor:
        return x @ y

    assert product(x, gt.ones(3)).shape == (2,)
    with pytest.raises(jaxtyping.TypeCheckError):
        product(x, gt.ones(4))
