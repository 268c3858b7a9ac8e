"""A worker whose device fails all calls ends by itself; it is started again, and sessions go on."""

import os
from contextlib import contextmanager
from pathlib import Path

import gt
import gt.cluster
import numpy as np
import pytest
from cluster_command import until
from processes import linux_only, one_engine_only, run_python, unsharded_only

# These tests start workers with their own engines.
pytestmark = [one_engine_only, unsharded_only, linux_only]

HERE = str(Path(__file__).parent)
WORDS = "the device has failed (CUDA error: an illegal memory access was encountered)"


class Device:
    """The faults of the devices of all workers, and the starts of their engines."""

    def __init__(self, folder: Path):
        self._faults, self._starts = folder / "faults", folder / "starts"
        self.environment = {
            "GT_TEST_FAULTS": str(self._faults),
            "GT_TEST_STARTS": str(self._starts),
            "PYTHONPATH": f"{HERE}:{os.environ.get('PYTHONPATH', HERE)}",
        }
        self.fail(0)

    def fail(self, times: int) -> None:
        """Have the next calls of tanh fail."""
        self._faults.write_text("fault\n" * times)

    def left(self) -> int:
        """Return how many faults have not occurred."""
        return len(self._faults.read_text().splitlines())

    def starts(self) -> int:
        """Return how many engines were started."""
        return len(self._starts.read_text().splitlines())


@pytest.fixture
def device(tmp_path, monkeypatch):
    device = Device(tmp_path)
    for name, value in device.environment.items():
        monkeypatch.setenv(name, value)
    return device


@contextmanager
def session_on(folder: Path, workers: int):
    """Compute on workers that are started again when they fail; yield their cluster."""
    engine = "gpu_engines:Failing"
    with (
        gt.cluster.Local(workers, engine=engine, folder=folder) as cluster,
        gt.Session(cluster.address, key_file=cluster.key_file),
    ):
        yield cluster


@pytest.mark.parametrize("workers", [1, 2])
def test_a_fault_costs_one_restart_and_the_session_goes_on(device, tmp_path, workers):
    with session_on(tmp_path / "cluster", workers) as cluster:
        x = gt.tensor([0.5, 1.0])
        weights = x * 2 + 1
        assert weights.tolist() == [2.0, 3.0]
        assert device.starts() == workers
        device.fail(1)
        y = x.tanh() + weights
        expected = np.tanh(np.array([0.5, 1.0], "f4")) + np.array([2.0, 3.0], "f4")
        assert y.tolist() == expected.tolist() and device.left() == 0
        assert (weights * x).tolist() == [1.0, 3.0]
        (session,) = gt.status().sessions
        assert session["recoveries"] == 1
        # The other worker may have answered before the failed one is back.
        until(lambda: len(gt.status().workers) == workers)
        assert device.starts() == workers + 1
        logs = "".join(cluster.logs().values())
        assert logs.count(WORDS) == 1 and logs.count("the worker ends") == 1
        assert cluster.status().notes == []


def test_an_operation_that_always_faults_is_abandoned(device, tmp_path):
    """Its worker is started again each time, however soon it ends."""
    with session_on(tmp_path / "cluster", 1) as cluster:
        x = gt.tensor([0.5, 1.0])
        assert (x * 2).tolist() == [1.0, 2.0]
        device.fail(1000)
        with pytest.raises(gt.WorkerError, match="it ended the workers that ran it"):
            x.tanh().tolist()
        assert (x * 3).tolist() == [1.5, 3.0]
        assert device.starts() == 1 + 1000 - device.left() and device.starts() <= 5
        assert cluster.status().notes == []


def test_the_process_of_a_user_does_not_end(device):
    code = (
        "import gt\n"
        "for _ in range(2):\n"
        "    try: print(gt.ones(2).tanh().tolist())\n"
        "    except gt.WorkerError as error: print(str(error).splitlines()[0])\n"
    )
    device.fail(1)
    done = run_python(code, GT_BACKEND="gpu_engines:Failing", **device.environment)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout.count("CUDA error: an illegal memory access was encountered") == 2
