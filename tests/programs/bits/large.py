"""Compute with large tensors, by every kind of operation; print digests of the results."""

import gt
from digests import show
from gt.nn import functional as F

x, w = gt.randn(1000, 1003), gt.randn(1003, 517)
for dtype in (gt.float32, gt.float64, gt.bfloat16, gt.float16):
    a, b = x.to(dtype), w.to(dtype)
    for _ in range(10):
        show(f"product {dtype}", a @ b)
        show(f"reduced {dtype}", a.sum(), a.sum(0), a.mean(1), (a * a).sum(), a.amax(0))
        show(f"transposed {dtype}", (a + 1).T.sum(0), (a * 2).T.mean(1), a.T.sum())
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
