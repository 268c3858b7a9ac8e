"""What sessions keep of PyTorch programs."""

import signal
from collections import OrderedDict

import gt
import pytest
from processes import cluster, embedded_only, one_engine_only, run_program, unsharded_only

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
pytest.importorskip("gt.torch")


@pytest.fixture(autouse=True)
def nothing_kept():
    yield
    for name in gt.kept():
        gt.unkeep(name)


def test_tensors_return_with_device_gradient_and_identity():
    weight = torch.nn.Parameter(torch.arange(6.0, device="cluster").reshape(2, 3))
    plain = torch.arange(3, device="cluster", requires_grad=False)
    here = torch.tensor([1.5, 2.5], dtype=torch.float64, requires_grad=True)
    value = {
        "weight": weight,
        "tied": [weight, (plain, plain)],
        "here": here,
        "turned": weight.T,
        "both": {"gt": gt.ones(2), 3: None},
        "rest": (1, "a", 2.5, [True]),
    }
    gt.torch.keep("value", value)
    with torch.no_grad():
        weight += 100  # What is kept are the values of that moment.
    found = gt.torch.kept("value")
    assert list(found) == list(value) and found["rest"] == value["rest"]
    assert isinstance(found["weight"], torch.nn.Parameter) and found["weight"].requires_grad
    assert found["weight"] is found["tied"][0] and found["tied"][1][0] is found["tied"][1][1]
    assert found["weight"].device.type == found["turned"].device.type == "cluster"
    assert found["weight"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert found["turned"].tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert found["here"].device.type == "cpu" and found["here"].requires_grad
    assert torch.equal(found["here"], here) and found["here"].dtype == torch.float64
    assert isinstance(found["both"]["gt"], gt.Tensor) and found["both"][3] is None
    assert not found["tied"][1][0].requires_grad


def test_state_dicts_keep_their_versions_and_missing_names_are_reported():
    module = torch.nn.BatchNorm1d(3).to("cluster")
    gt.torch.keep("state", module.state_dict())
    found = gt.torch.kept("state")
    assert type(found) is OrderedDict and found._metadata == module.state_dict()._metadata
    assert module.load_state_dict(found) == ([], [])
    assert gt.torch.kept("other", None) is None
    with pytest.raises(KeyError, match="nothing is kept under 'other', the names are: 'state'"):
        gt.torch.kept("other")
    with pytest.raises(TypeError, match=r"at 'a.weight' cannot be kept\n  hint: gt.torch.keep"):
        gt.keep("state", {"a": module.state_dict()})


@embedded_only
@unsharded_only
@one_engine_only
def test_a_killed_program_continues_on_the_device_bit_for_bit():
    def train(name: str, dies_after: int) -> list[str]:
        done = run_program("torch_device/resuming", address, name, 24, dies_after, timeout=120)
        assert done.returncode == (-signal.SIGKILL if dies_after >= 0 else 0), done
        return done.stdout.splitlines()

    with cluster(1) as (address, _):
        expected = train("whole", -1)
        assert train("killed", 9) == ["begins at 0"]
        assert train("killed", -1) == ["begins at 10", *expected[1:]]
