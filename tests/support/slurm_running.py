"""SLURM for the tests of one file, and programs that own a cluster in it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from slurm import SlurmSystem, missing

#: The longest that a test waits for something that happens, in seconds.
LIMIT = 60.0

#: What the clusters of tests are asked for, unless the test says otherwise.
SMALL = {"engine": "native", "worker_options": ["--memory=50MB"]}

#: A program that starts a cluster, says its address, and then does nothing.
OWNER = """
import json, sys, time
import gt.cluster
cluster = gt.cluster.Slurm(**json.loads(sys.argv[1])).start()
print(cluster.address, flush=True)
time.sleep(600)
"""


@contextmanager
def running_slurm(folder: Path, **options) -> Iterator[SlurmSystem]:
    """Yield a SLURM that programs of this process find; skip the test where there is none."""
    why = missing()
    if why is not None:
        pytest.skip(why)
    system = SlurmSystem(folder, **options)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in system.environment.items():
            patch.setenv(name, value)
        try:
            system.start()
            yield system
        finally:
            system.stop()


@contextmanager
def owner(folder: Path, **arguments) -> Iterator[subprocess.Popen]:
    """Yield the process of a program whose cluster has started."""
    given = json.dumps({**SMALL, "folder": str(folder), **arguments})
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, given], stdout=subprocess.PIPE, text=True, env=os.environ
    )
    try:
        assert process.stdout.readline() == f"file://{folder / 'address'}\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def eventually(what: str, is_so: Callable[[], object], limit: float = LIMIT) -> float:
    """Wait until something is so; return the seconds."""
    start = time.monotonic()
    while not is_so():
        assert time.monotonic() - start < limit, f"waited {limit:g} s for {what}"
        time.sleep(0.1)
    return time.monotonic() - start
