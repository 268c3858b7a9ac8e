"""Programs in the style of published ones run with GT, with the numbers of PyTorch on the CPU."""

import numpy as np
import published
import pytest

pytest.importorskip("torchvision")
# Before the first backward pass, which creates a thread for each device.
pytest.importorskip("gt.torch")


IDS = [f"{program.stem}-{way}" for program, way in published.RUNS]


@pytest.mark.parametrize(("program", "way"), published.RUNS, ids=IDS)
def test_a_program_computes_the_same_with_gt(program, way, tmp_path):
    wanted, given = published.run_with_both(program, way, tmp_path)
    assert len(given) == len(wanted) > 10
    for one, other in zip(given, wanted, strict=True):
        if isinstance(other, float):
            np.testing.assert_allclose(one, other, rtol=2e-3, atol=1e-5)
        else:
            assert one == other
