"""Attend to keys and values that grow by a row per step; print what JAX and the worker compiled."""

import gt
import hot_loop
import jax

F = gt.nn.functional
seen = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, *_, **__: seen.append(event) if event.endswith("backend_compile_duration") else 0
)
q, k, v = (gt.randn(1, 2, 1, 8) for _ in range(3))
keys, values = k, v
for _ in range(24):
    keys, values = gt.cat([keys, k], dim=2), gt.cat([values, v], dim=2)
    weights = gt.softmax(q @ keys.transpose(-1, -2) * 8**-0.5, dim=-1)
    difference = (weights @ values - F.scaled_dot_product_attention(q, keys, values)).abs().max()
    assert difference.item() < 1e-5
print(len(seen), hot_loop.compiled())
