"""Loading a state into a sharded model keeps the placement of its parameters."""

import pytest
from processes import embedded_only, run_python

pytestmark = embedded_only

CODE = """
import gt, numpy as np
gt.gpu_workers(3)
gt.register_config("rows", gt.SignalConfig(gt.ShardConfig(axis=0)))
gt.register_config("copied", gt.SignalConfig(gt.ShardConfig(replicated=True)))
for name, expected in {"rows": "Shard(0)", "copied": "Replicate"}.items():
    with gt.signal.context(name):
        layer = gt.nn.Linear(6, 6)
    values = np.arange(36, dtype=np.float32).reshape(6, 6)
    layer.load_state_dict({"weight": values, "bias": np.ones(6, np.float32)})
    (copy,) = gt.debug.placement(layer.weight)
    assert (str(copy.placement), copy.workers) == (expected, [0, 1, 2]), copy
    assert layer.weight.tolist() == values.tolist() and layer.weight.requires_grad
"""


@pytest.mark.skipif("GT_TEST_SHARDED" in __import__("os").environ, reason="has its own workers")
def test_loading_keeps_the_placement():
    done = run_python(CODE)
    assert (done.returncode, done.stderr) == (0, "")
