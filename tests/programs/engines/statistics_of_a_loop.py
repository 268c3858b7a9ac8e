"""Run a hot loop; print the statistics of the worker, and what it compiled."""

import gt
import hot_loop

hot_loop.run()
gt.debug.print_worker_stats()
print(hot_loop.compiled())
