"""Read an index that is out of range on a server; print the error of `gt.status()` for each line.

Argument: the server.
"""

import json
import sys

import gt

if __name__ == "__main__":
    gt.connect(sys.argv[1])
    values = gt.arange(3)
    # The worker finds out: the program does not know the index.
    index = gt.ones(2, dtype=gt.int64) * 7
    try:
        values.gather(0, index).sum().item()
    except gt.WorkerError:
        print("failed", flush=True)
    for _ in sys.stdin:
        (session,) = gt.status().sessions
        print(json.dumps(session["last_error"]), flush=True)
