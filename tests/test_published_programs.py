"""Programs in the style of published ones run with `import gt as torch`, with the same numbers."""

import numpy as np
import published
import pytest

pytest.importorskip("torchvision")


@pytest.mark.parametrize("program", published.PROGRAMS, ids=lambda path: path.stem)
def test_a_program_computes_the_same_with_gt(program, tmp_path):
    wanted, given = published.run_with_both(program, tmp_path)
    assert len(given) == len(wanted) > 10
    for one, other in zip(given, wanted, strict=True):
        if isinstance(other, float):
            np.testing.assert_allclose(one, other, rtol=2e-3, atol=1e-5)
        else:
            assert one == other
