"""Train a transformer whose steps differ; print digests of loss, norm and parameters."""

import gt
from digests import show
from gt.nn import functional as F

width, heads, length = 48, 3, 17


def weight(*shape):
    """Return a parameter with small random values."""
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
