"""Check entries in child processes: one that dies fails its entry, not the run."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from dataclasses import asdict
from pathlib import Path

# The time limits of one entry, above the limit inside the process, and of a process's start.
SECONDS = 90
START = 180
HERE = Path(__file__)


class Worker:
    """A child process that checks entries, one at a time."""

    def __init__(self, options: dict):
        self.options = options
        self.process = None

    def check(self, name: str, kind: str) -> dict:
        """Return the result of an entry; if the process dies or hangs, a failure."""
        if self.process is None:
            self._start()
        timer = threading.Timer(SECONDS, self.process.kill)
        timer.start()
        try:
            print(
                json.dumps({"name": name, "kind": kind, **self.options}),
                file=self.process.stdin,
                flush=True,
            )
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        finally:
            timer.cancel()
        return json.loads(answer) if answer else self._died(name, kind)

    def _start(self) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            [sys.executable, str(HERE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        timer = threading.Timer(START, self.process.kill)
        timer.start()
        ready = self.process.stdout.readline()
        timer.cancel()
        if not ready:
            raise RuntimeError("a process for checks does not start: is gt built?")

    def _died(self, name: str, kind: str) -> dict:
        status = self.process.wait()
        self.process = None
        how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        return {"name": name, "kind": kind, "reasons": [f"the process dies: {how}"]}

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()


def check_all(checks: list[tuple[str, str]], jobs: int, options: dict, done) -> list[dict]:
    """Return the results of all (name, kind), checked in `jobs` processes.

    `done` is called with each result.
    """
    waiting = queue.SimpleQueue()
    for check in checks:
        waiting.put(check)
    results, errors = [], []
    threads = [
        threading.Thread(target=_serve, args=(waiting, Worker(options), results, errors, done))
        for _ in range(max(1, min(jobs, len(checks))))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return sorted(results, key=lambda result: (result["kind"], result["name"]))


def _serve(waiting, worker: Worker, results: list, errors: list, done) -> None:
    """Check waiting entries in one process until none is left."""
    try:
        while not errors:
            try:
                name, kind = waiting.get_nowait()
            except queue.Empty:
                break
            results.append(worker.check(name, kind))
            done(results[-1])
    except Exception as error:
        errors.append(error)
    finally:
        worker.close()


def main() -> None:
    """Check the entries that are read from standard input, and write their results."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # Output of libraries must not be read as answers.
    import torch
    from check import check_entry

    torch.set_num_threads(1)
    print("{}", file=answers)
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(asdict(check_entry(**asked))), file=answers)


if __name__ == "__main__":
    main()
