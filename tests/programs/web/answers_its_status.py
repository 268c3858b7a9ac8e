"""Keep tensors on a server, publish one, and print the status as JSON for each line that is read.

Arguments: the server, and the name of the session.
"""

import json
import sys

import gt

if __name__ == "__main__":
    address, name = sys.argv[1:]
    gt.connect(address, name=name)
    kept = [gt.randn(100, 100) for _ in range(4)]
    gt.publish("weights", kept[0], description=name)
    gt.synchronize()
    print("at work", flush=True)
    for _ in sys.stdin:
        gt.synchronize()
        status = gt.status()
        answer = {"workers": status.workers, "sessions": status.sessions}
        answer["publications"] = [[of.name, of.version, of.bytes] for of in gt.published()]
        print(json.dumps(answer), flush=True)
