"""Each entry of PyTorch's database of modules passes."""

import os
import warnings

import gt
import pytest
from processes import embedded_only

pytest.importorskip("torch")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PyTorch's tests warn about missing optional packages
    from database import check, check_errors, module_db, name_of

# Modules are made of operations, which are tested on every engine.
pytestmark = [
    embedded_only,
    pytest.mark.skipif("GT_BACKEND" in os.environ, reason="modules are compared on one engine"),
]

#: Modules that accept what PyTorch rejects: a weight of another dtype than the input.
TAKEN = {"NLLLoss"}


@pytest.mark.parametrize("info", module_db, ids=name_of)
def test_modules_match_those_of_pytorch(info):
    if not hasattr(gt.nn, name_of(info)):
        pytest.skip(f"there is no gt.nn.{name_of(info)}")
    assert not check(info)
    assert name_of(info) in TAKEN or not check_errors(info)
