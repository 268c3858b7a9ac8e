"""Run a hot loop; print whether JAX's cache was used, whether code was compiled, and the cache.

With an argument, the program itself sets up JAX's cache in this folder.
"""

import sys

import hot_loop
import jax

if sys.argv[1:]:
    jax.config.update("jax_compilation_cache_dir", sys.argv[1])
hits = []
jax.monitoring.register_event_listener(
    lambda event, **_: hits.append(event) if event.endswith("/cache_hits") else 0
)
hot_loop.run()
print(len(hits) > 0, len(hot_loop.compiled()) > 0)
print(jax.config.jax_compilation_cache_dir)
