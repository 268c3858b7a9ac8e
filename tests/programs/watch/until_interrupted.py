"""Watch until Ctrl-C, then go on. Argument: a server's address, or nothing."""

import signal
import sys

# A process that is started in the background ignores it.
signal.signal(signal.SIGINT, signal.default_int_handler)
import gt  # noqa: E402

if len(sys.argv) > 1:
    gt.connect(sys.argv[1])
print(gt.watch(every=0.1))
