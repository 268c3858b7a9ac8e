"""Operations that fail for some values, when steps do not wait for values, as on a GPU."""

import pytest
from gt.engines.check.reference import Reference
from gt.engines.check.wrong import BAD, build, inputs
from gt.engines.engine import StepError


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_as_on_a_gpu(bad):
    """Requirements on values are checked after the step."""
    pytest.importorskip("torch", reason="pytorch: make test-all")
    from gt.engines.pytorch import PyTorchEngine

    engine, reference = PyTorchEngine("cpu"), Reference()
    engine.finds_errors = False
    name, value, step = bad
    builder, outputs = build()
    plan = builder.plan(*outputs)
    with pytest.raises(StepError) as wanted:
        reference.run(plan, inputs(reference, builder, name, value))
    with pytest.raises(StepError) as raised:
        engine.run(plan, inputs(engine, builder, name, value))
    assert (raised.value.step, str(raised.value)) == (step, str(wanted.value))
    engine.run(plan, builder.values(engine))
