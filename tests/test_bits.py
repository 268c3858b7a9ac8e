"""The native engine returns the same bits, hot or cold, with any batches and processors."""

import pytest
from processes import embedded_only, one_engine_only, run_program

pytestmark = [embedded_only, one_engine_only]


def digests(*command: str, **environment: str) -> list[str]:
    done = run_program(*command, **environment)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", ["perceptron", "transformer", "large"])
def test_bits_do_not_depend_on_hot_paths_batches_or_processors(name):
    program, one_processor = f"bits/{name}", (f"bits/{name}", "--one-processor")
    cold = digests(program, GT_AUTO_COMPILE="0", GT_COMPILE="0")
    assert len(cold) > 10
    assert digests(program) == cold, "hot"
    assert digests(program, GT_COMPILE="1") == cold, "compiled on request"
    assert digests(program, GT_AUTO_COMPILE="0", GT_WORKER_BATCH_SIZE="7") == cold, "batches of 7"
    assert digests(*one_processor) == cold, "hot on one processor"
    assert digests(*one_processor, GT_AUTO_COMPILE="0") == cold, "on one processor"
