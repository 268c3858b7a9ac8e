"""Programs that import gt.torch after their first backward pass."""

import pytest
from processes import run_python

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

BEFORE = "import torch\nx = torch.ones(2, requires_grad=True)\n"
AFTER = """
import gt.torch
y = torch.ones(2, device="cluster", requires_grad=True)
(y * 3).sum().backward()
print(y.grad.tolist())
x.sum().backward()
"""


@pytest.mark.skipif(torch.cuda.is_available(), reason="PyTorch has started threads for the GPUs")
@pytest.mark.parametrize("first", ["x.sum().backward()", "torch.autograd.grad(x.sum(), x)"])
def test_the_error_says_to_import_it_first(first):
    done = run_python(BEFORE + first + AFTER, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert "INTERNAL ASSERT" not in done.stderr
    assert "RuntimeError: gt.torch was imported after the first backward pass" in done.stderr
    assert done.stderr.endswith("hint: import gt.torch before it, at the top of the program\n")


@pytest.mark.parametrize("loaded", ["0", "1"])
def test_before_the_first_backward_pass_it_works(loaded):
    done = run_python(BEFORE + AFTER, TORCH_DEVICE_BACKEND_AUTOLOAD=loaded)
    assert (done.stdout, done.stderr) == ("[3.0, 3.0]\n", "")
