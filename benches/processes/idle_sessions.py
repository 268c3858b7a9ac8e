"""Sessions that compute a little for benches/web_cost.py: SERVER COUNT SECONDS_BETWEEN.

Prints `ready`, and ends when its input does.
"""

import sys
import threading
import time

import gt


def main() -> None:
    address, count, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    sessions = [gt.Session(address, name=f"experiment-{number}") for number in range(count)]
    held = []
    for session in sessions:
        with session.use():
            held.append(gt.ones(64, 64))
            held[-1].sum().item()
    print("ready", flush=True)
    ended = threading.Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    while not ended.is_set():
        # One after the other, so that there is no burst.
        for session, tensor in zip(sessions, held, strict=True):
            with session.use():
                (tensor * 2).sum().item()
            time.sleep(pause / count)
    for session in sessions:
        session.close()


main()
