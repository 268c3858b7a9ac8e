"""Print how many sessions a server has and how many bytes its workers hold, once both are low."""

import sys
import time

import gt

gt.connect(sys.argv[1], insecure=True)
until = time.monotonic() + 20
while True:
    status = gt.status()
    # A worker that was killed a moment ago may still be listed, without statistics. The session of
    # a client that ended while it was disconnected may still be in its grace period.
    held = [each["bytes"] for each in status.workers]
    is_free = len(status.sessions) == 1 and set(held) == {0}
    if is_free or time.monotonic() > until:
        break
    time.sleep(0.1)
print(len(status.sessions), "session,", sum(bytes or 0 for bytes in held), "bytes")
