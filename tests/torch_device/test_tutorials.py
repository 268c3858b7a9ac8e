"""Programs in the style of PyTorch's tutorials have the same numbers on the device "cluster"."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
device = pytest.importorskip("gt.torch")

from tutorials import PROGRAMS  # noqa: E402


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(name):
    def run(place):
        torch.manual_seed(0)
        return PROGRAMS[name](place, torch.Generator().manual_seed(1))

    expected = run(torch.device("cpu"))
    assert len(expected) > 2
    assert run(torch.accelerator.current_accelerator()) == pytest.approx(expected, rel=1e-4)
