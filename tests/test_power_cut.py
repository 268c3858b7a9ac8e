"""A server and all of its workers die at once, and go on from the folders of their states."""

import re
import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from processes import cluster, embedded_only, one_engine_only, run_gt, unsharded_only
from test_restart import Session
from training import SHARDED, TRAINING, Training, start_server, start_worker, undisturbed

# They start servers of their own.
pytestmark = [embedded_only, unsharded_only, one_engine_only]


class Cluster:
    """A server and workers that are killed at once, and started again."""

    def __init__(self, address: str, state: Path, workers: int, options: tuple[str, ...]) -> None:
        self.address, self.state, self.workers = address, state, workers
        self.options = options
        self.processes: list[subprocess.Popen] = []
        #: What all that were killed had written to stderr.
        self.told = ""

    def start(self) -> None:
        self.processes = [self.start_one(place) for place in range(1 + self.workers)]

    def start_one(self, place: int) -> subprocess.Popen:
        """Start the server, which has place 0, or a worker."""
        if place == 0:
            return start_server(self.address, self.state / "server", *self.options)
        name = f"w{place - 1}"
        return start_worker(self.address, name, "--state", str(self.state / name))

    def wait_for_snapshot(self) -> None:
        """Wait until a worker has written values."""
        until = time.monotonic() + 60
        while not any(path.stat().st_size > 1000 for path in self.state.glob("w*/journal-*")):
            assert time.monotonic() < until, "there is no snapshot"
            time.sleep(0.01)

    def kill(self, first: int = 0) -> None:
        """Kill all processes from a place on at once."""
        for process in self.processes[first:]:
            process.kill()
        for process in self.processes[first:]:
            self.told += process.communicate(timeout=20)[1]
        del self.processes[first:]

    def restart_workers(self) -> None:
        self.kill(first=1)
        self.processes += [self.start_one(place) for place in range(1, 1 + self.workers)]


@contextmanager
def durable(workers: int, state: Path, *options: str):
    with cluster(0) as (address, processes):
        server = processes.pop()
        server.kill()
        server.communicate(timeout=20)
        whole = Cluster(address, state, workers, options)
        whole.start()
        try:
            yield whole
        finally:
            whole.kill()


@pytest.mark.parametrize(
    ("code", "workers", "steps"),
    [(TRAINING, 1, 4000), (SHARDED, 2, 4000)],
    ids=["one", "cut"],
)
def test_training_goes_on_with_the_same_numbers_after_a_power_cut(code, workers, steps, tmp_path):
    expected = undisturbed(code, workers, steps)
    with durable(workers, tmp_path) as whole:
        training = Training(code, whole.address, steps)
        for part in (1, 2, 3):
            training.wait_for(steps // 400 * 100 * part)
            if part > 1:
                whole.wait_for_snapshot()
            whole.kill()
            whole.start()
        assert training.end() == expected
    counts = [int(count) for count in re.findall(r"(\d+) snapshots in .* are taken up", whole.told)]
    assert max(counts) > 0, whole.told
    assert all("was lost" in line or "again" in line for line in training.errors), training.errors


@pytest.mark.parametrize(("code", "workers"), [(TRAINING, 1), (SHARDED, 2)], ids=["one", "cut"])
def test_training_goes_on_when_all_workers_die_and_the_server_lives(code, workers, tmp_path):
    expected = undisturbed(code, workers, 4000)
    with durable(workers, tmp_path) as whole:
        training = Training(code, whole.address, 4000)
        for part in (1, 2, 3):
            training.wait_for(1000 * part)
            whole.wait_for_snapshot()
            whole.restart_workers()
        assert training.end() == expected
    assert "are taken up again" in whole.told, whole.told
    # The server itself keeps what one worker alone has.
    has_waited = any("waits for the workers" in line for line in training.errors)
    assert has_waited == (workers > 1), training.errors


def test_a_session_whose_workers_do_not_come_back_is_told(tmp_path):
    with durable(2, tmp_path, "--worker-wait", "4") as whole:
        training = Training(TRAINING, whole.address, 100_000)
        whole.wait_for_snapshot()
        training.wait_for(2000)
        whole.kill(first=1)
        assert training.process.wait(timeout=60) != 0
        for thread in training.threads:
            thread.join()
        training.process.stdout.close()
        training.process.stderr.close()
    said = "".join(training.errors)
    assert "waits for the workers 'w" in said and "were not started again within 4 s" in said, said


def test_without_its_folders_a_session_is_told_what_is_lost(tmp_path):
    with durable(2, tmp_path) as whole:
        session = Session(whole.address)
        assert session.step() == "21.0"
        whole.kill()
        for number in range(2):
            shutil.rmtree(tmp_path / f"w{number}")
        whole.start()
        answer = session.step()
        # All of it is in the journal if there was no snapshot yet.
        assert answer == "27.0" or "could not be made again" in answer, answer
        session.end()


def test_a_torn_state_is_told_and_what_was_complete_before_is_used(tmp_path):
    with durable(1, tmp_path) as whole:
        training = Training(TRAINING, whole.address, 4000)
        whole.wait_for_snapshot()
        whole.kill()
        (journal,) = (tmp_path / "w0").glob("journal-*")
        with journal.open("ab") as file:
            file.write(b"torn")
        whole.start()
        assert training.end() == undisturbed(TRAINING, 1, 4000)
    assert "4 bytes are lost" in whole.told and "1 snapshots in" in whole.told


def test_a_state_that_nobody_knows_is_told_and_dropped(tmp_path):
    with durable(1, tmp_path) as whole:
        session = Session(whole.address)
        training = Training(TRAINING, whole.address, 1500)
        training.end()
        whole.kill()
        session.process.kill()
        session.process.communicate()
        shutil.rmtree(tmp_path / "server")
        whole.start()
        session = Session(whole.address)
        assert session.step() == "21.0"
        session.end()
    assert "does not know any more: they are dropped" in whole.told


def test_a_folder_is_of_one_worker_and_private(tmp_path):
    with durable(1, tmp_path) as whole:
        host, port = whole.address.split(":")
        command = ("worker", "--host", host, "-p", port, "--state")
        second = run_gt(*command, str(tmp_path / "w0"))
        assert second.returncode == 1 and "in use by another gt process" in second.stderr
        server = run_gt(*command, str(tmp_path / "server"))
        assert server.returncode == 1 and "in use" in server.stderr
        (tmp_path / "open").mkdir(mode=0o755)
        public = run_gt(*command, str(tmp_path / "open"))
        assert public.returncode == 1 and "chmod 700" in public.stderr
        (tmp_path / "foreign").mkdir(mode=0o700)
        (tmp_path / "foreign" / "journal-00000001").write_text("a diary, perhaps a long one")
        foreign = run_gt(*command, str(tmp_path / "foreign"))
        assert foreign.returncode == 1 and "is no journal of gt" in foreign.stderr
