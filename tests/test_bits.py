"""The same bits on GT's own engine: hot or cold, cut anywhere, on any number of processors."""

import pytest
from processes import embedded_only, one_engine_only, run_python

pytestmark = [embedded_only, one_engine_only]

ONE_PROCESSOR = """
import os
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
"""

START = """
import hashlib
import gt
from gt import nn

gt.manual_seed(0)

def show(name, *tensors):
    digest = hashlib.sha256()
    for tensor in tensors:
        tensor = tensor.detach()
        tensor = tensor.float() if tensor.dtype == gt.bfloat16 else tensor
        digest.update(tensor.contiguous().numpy().tobytes())
    print(name, digest.hexdigest()[:12])
"""

PERCEPTRON = """
model = nn.Sequential(nn.Linear(33, 65), nn.Tanh(), nn.Dropout(0.1), nn.Linear(65, 7))
optimizer = gt.optim.AdamW(model.parameters(), lr=0.01)
data, target = gt.randn(96, 33), gt.randint(0, 7, (96,))
for step in range(40):
    start = 31 * (step % 3)
    x, y = data[start : start + 31], target[start : start + 31]
    loss = nn.cross_entropy_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    show(f"step {step}", loss, *model.parameters())
"""

TRANSFORMER = """
F = nn.functional
width, heads, length = 48, 3, 17
def weight(*shape):
    return (gt.randn(*shape) * 0.1).requires_grad_()
table = weight(29, width)
qkv, out = weight(3 * width, width), weight(width, width)
up, down = weight(96, width), weight(width, 96)
scale, shift, bias = weight(width), weight(width), weight(96)
parameters = [table, qkv, out, up, down, scale, shift, bias]
for step in range(24):
    tokens = gt.randint(0, 29, (5, length))
    x = table[tokens]
    y = F.layer_norm(x, (width,), scale, shift)
    q, k, v = (y @ qkv.T).chunk(3, dim=-1)
    q, k, v = (t.reshape(5, length, heads, -1).transpose(1, 2) for t in (q, k, v))
    if step % 2:
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    else:
        y = ((q @ k.transpose(-1, -2)) * 0.25).softmax(-1) @ v
    x = x + y.transpose(1, 2).reshape(5, length, width) @ out.T
    x = x + F.gelu(x @ up.T + bias) @ down.T
    logits = F.rms_norm(x, (width,)) @ table.T
    if step % 3 == 2:
        logits = logits.bfloat16().float()
    loss = F.cross_entropy(logits.reshape(-1, 29), tokens.reshape(-1))
    loss.backward()
    with gt.no_grad():
        norm = sum((p.grad * p.grad).sum() for p in parameters) ** 0.5
        for p in parameters:
            p -= 0.1 * p.grad / (norm + 1.0)
            p.grad = None
    show(f"step {step}", loss, norm, *parameters)
"""

LARGE = """
F = nn.functional
x, w = gt.randn(1000, 1003), gt.randn(1003, 517)
for dtype in (gt.float32, gt.float64, gt.bfloat16, gt.float16):
    a, b = x.to(dtype), w.to(dtype)
    for again in range(10):
        show(f"product {dtype}", a @ b)
        show(f"folded {dtype}", a.sum(), a.sum(0), a.mean(1), (a * a).sum(), a.amax(0))
        show(f"turned {dtype}", (a + 1).T.sum(0), (a * 2).T.mean(1), a.T.sum())
        show(f"rows {dtype}", a.softmax(-1), a.log_softmax(0), F.layer_norm(a, (1003,)), a.var(0))
show("long", gt.randn(7, 300_001) @ gt.randn(300_001, 3), gt.randn(300_001) @ gt.randn(300_001))
show("batch", gt.randn(9, 65, 127) @ gt.randn(9, 127, 33))
show("scan", x.cumsum(0), x.cumsum(1), x.logsumexp(0), x.cumprod(1), x.norm(), x.std())
show("index", x.index_add(0, gt.randint(0, 1000, (3000,)), gt.randn(3000, 1003)))
show("place", gt.zeros(50).scatter_add(0, gt.randint(0, 50, (400_000,)), gt.randn(400_000)))
image, kernel = gt.randn(3, 5, 65, 67).requires_grad_(), gt.randn(9, 5, 3, 3).requires_grad_()
made = F.conv2d(image, kernel, padding=1)
made.square().sum().backward()
show("convolution", made, image.grad, kernel.grad)
q, k, v = (gt.randn(2, 3, 333, 32).requires_grad_() for _ in range(3))
made = F.scaled_dot_product_attention(q, k, v, is_causal=True)
made.square().sum().backward()
show("attention", made, q.grad, k.grad, v.grad)
square = gt.randn(90, 90)
show("factors", *gt.linalg.qr(gt.randn(130, 70)), gt.linalg.inv(square), gt.linalg.svdvals(x))
show("spectrum", gt.view_as_real(gt.fft.rfft(x)))
"""


def shown(code: str, **environment: str) -> list[str]:
    done = run_python(code, **environment)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("work", ["PERCEPTRON", "TRANSFORMER", "LARGE"])
def test_no_bit_depends_on_how_it_is_run(work):
    code = START + globals()[work]
    cold = shown(code, GT_AUTO_COMPILE="0", GT_COMPILE="0")
    assert len(cold) > 10
    assert shown(code) == cold, "hot"
    assert shown(code, GT_COMPILE="1") == cold, "asked for"
    assert shown(code, GT_AUTO_COMPILE="0", GT_WORKER_BATCH_SIZE="7") == cold, "cut after 7"
    assert shown(ONE_PROCESSOR + code) == cold, "hot on one processor"
    assert shown(ONE_PROCESSOR + code, GT_AUTO_COMPILE="0") == cold, "on one processor"
