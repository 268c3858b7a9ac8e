"""A server with `--state` is killed and restarted: sessions resume, with the same bits."""

import resource
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import (
    cluster,
    embedded_only,
    one_engine_only,
    run_python,
    start_program,
    unsharded_only,
)
from training import GPT, SHARDED, TRAINING, Training, start_server, undisturbed

# These tests start their own servers.
pytestmark = [embedded_only, unsharded_only, one_engine_only]


def kill(process: subprocess.Popen) -> str:
    """Kill a process; return what it has written to stderr."""
    process.kill()
    return process.communicate()[1] or ""


@pytest.mark.parametrize(
    ("name", "workers", "steps"),
    [(TRAINING, 1, 1500), (TRAINING, 2, 1500), (SHARDED, 2, 1500), (GPT, 2, 420)],
    ids=["one", "two", "sharded", "gpt"],
)
def test_training_resumes_with_the_same_bits_when_the_server_is_killed(
    name, workers, steps, tmp_path
):
    expected = undisturbed(name, workers, steps)
    with cluster(workers, "--state", str(tmp_path)) as (address, processes):
        training = Training(name, address, steps)
        for part in (1, 2, 3):
            training.wait_for(steps // 400 * 100 * part)
            kill(processes.pop(0))
            processes.insert(0, start_server(address, tmp_path))
        assert training.end() == expected
    assert training.longest_gap() < 10
    assert all("was lost" in line or "again" in line for line in training.errors), training.errors


class Session:
    """A program that adds one to each element of its tensor at each line that it reads."""

    def __init__(self, address: str, requests: int = 0) -> None:
        """Start the program, which requests the status `requests` times before each addition."""
        self.process = start_program("recovery/increments", address, requests)
        assert self.process.stdout.readline() == "15.0\n"

    def step(self) -> str:
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        assert select.select([self.process.stdout], [], [], 60)[0], "no answer for a minute"
        return self.process.stdout.readline().strip()

    def end(self) -> str:
        """Wait for the end of the program; return what it has written to stderr."""
        return self.process.communicate("", timeout=30)[1]


def test_many_sessions_resume_and_new_ones_start(tmp_path):
    with cluster(2, "--state", str(tmp_path)) as (address, processes):
        sessions = [Session(address) for _ in range(5)]
        for round in range(1, 4):
            assert {session.step() for session in sessions} == {f"{15.0 + 6 * round}"}
            kill(processes.pop(0))
            processes.insert(0, start_server(address, tmp_path))
            new = Session(address)
            assert new.step() == "21.0"
            new.end()
        assert all("was started again" in session.end() for session in sessions)
        # Neither sessions nor tensors are left. A program that ends while it reconnects takes no
        # leave: the server ends its session after some seconds of silence.
        done = run_python(
            "import sys, time, gt; gt.connect(sys.argv[1]); until = time.monotonic() + 30\n"
            "left = None\n"
            "while left != (1, 0) and time.monotonic() < until:\n"
            "    status = gt.status()\n"
            "    left = len(status.sessions), sum(w['bytes'] for w in status.workers)\n"
            "    time.sleep(0.1)\n"
            "print(left)",
            address,
        )
        assert done.stdout == "(1, 0)\n", done


def test_sessions_resume_after_a_server_was_terminated(tmp_path):
    with cluster(1, "--state", str(tmp_path)) as (address, processes):
        session = Session(address)
        server = processes.pop(0)
        server.terminate()
        assert "stopped" in server.communicate(timeout=20)[0]
        processes.insert(0, start_server(address, tmp_path))
        assert session.step() == "21.0"
        session.end()


def test_requests_without_a_journal_record_are_not_missed(tmp_path):
    """The last acknowledged messages of a client request the status, and are not in the journal."""
    with cluster(1, "--state", str(tmp_path)) as (address, processes):
        session = Session(address, requests=70)
        for answer in ("21.0", "27.0", "33.0"):
            assert session.step() == answer
            kill(processes.pop(0))
            processes.insert(0, start_server(address, tmp_path))
        session.end()


def test_a_suspended_server_resumes(tmp_path):
    """All its peers have closed their connections when it resumes, as after a suspended machine."""
    steps = 1500
    expected = undisturbed(TRAINING, 2, steps)
    with cluster(2, "--state", str(tmp_path)) as (address, processes):
        training = Training(TRAINING, address, steps)
        for step in (300, 800):
            training.wait_for(step)
            processes[0].send_signal(signal.SIGSTOP)
            time.sleep(8)
            processes[0].send_signal(signal.SIGCONT)
        assert training.end() == expected
    assert training.longest_gap() < 18


def test_server_and_worker_die_together(tmp_path):
    """The lost values are restored from the copy on the other worker."""
    with cluster(2, "--state", str(tmp_path)) as (address, processes):
        sessions = [Session(address), Session(address)]
        for round in range(1, 6):
            assert {session.step() for session in sessions} == {f"{15.0 + 6 * round}"}
            time.sleep(0.2)
        kill(processes.pop(1))
        kill(processes.pop(0))
        processes.insert(0, start_server(address, tmp_path))
        assert {session.step() for session in sessions} == {"51.0"}
        for session in sessions:
            session.end()


def test_a_client_that_ended_during_the_restart_is_freed(tmp_path):
    with cluster(1, "--state", str(tmp_path)) as (address, processes):
        session = Session(address)
        kill(processes.pop(0))
        kill(session.process)
        processes.insert(0, start_server(address, tmp_path))
        code = "import sys, gt; gt.connect(sys.argv[1]); print(len(gt.status().sessions))"
        until = time.monotonic() + 10
        while run_python(code, address).stdout != "1\n":
            assert time.monotonic() < until


def only_segment(state: Path) -> Path:
    (segment,) = state.glob("journal-*")
    return segment


@pytest.mark.parametrize("damage", ["torn", "zeros"])
def test_a_journal_is_used_up_to_its_damage(damage, tmp_path):
    with cluster(1, "--state", str(tmp_path)) as (address, processes):
        session = Session(address)
        assert session.step() == "21.0"
        kill(processes.pop(0))
        segment = only_segment(tmp_path)
        content = segment.read_bytes()
        if damage == "torn":
            # An incomplete record, whose command the client sends again.
            segment.write_bytes(content + b"the beginning of a record")
        else:
            segment.write_bytes(content + bytes(4096))
        server = start_server(address, tmp_path)
        processes.insert(0, server)
        assert session.step() == "27.0"
        errors = session.end()
        log = kill(processes.pop(0))
        assert "ends early" in log, (log, errors)


def test_a_session_with_damaged_records_raises_and_others_start(tmp_path):
    with cluster(1, "--state", str(tmp_path)) as (address, processes):
        session = Session(address)
        for _ in range(400):
            # Most of these messages are acknowledged: the client does not send them again.
            answer = session.step()
        kill(processes.pop(0))
        segment = only_segment(tmp_path)
        flipped = bytearray(segment.read_bytes())
        flipped[len(flipped) // 4] ^= 16
        segment.write_bytes(flipped)
        processes.insert(0, start_server(address, tmp_path))
        other = Session(address)
        answer = session.step()
        assert "the server's journal was damaged" in answer, answer
        assert other.step() == "21.0"
        session.end()
        other.end()
        assert "ends early" in kill(processes.pop(0))


def test_a_checkpoint_is_not_written_again(tmp_path):
    """A recovery does not restore a file that the program has renamed since."""
    state, saved = tmp_path / "state", tmp_path / "saved"
    root = ["--data-root", str(tmp_path)]
    with cluster(1, "--state", str(state), *root, worker_options=root) as (address, processes):
        program = start_program("recovery/saves", address, saved)
        for round in range(1, 5):
            program.stdin.write("\n")
            program.stdin.flush()
            assert program.stdout.readline() == f"{15.0 + 6 * round}\n"
            kill(processes.pop(0))
            processes.insert(0, start_server(address, state, *root))
        program.communicate("", timeout=30)
        assert program.returncode == 0
        assert {path.name for path in tmp_path.iterdir()} == {"state"} | {
            f"moved-{round}" for round in range(1, 5)
        }


def test_invalid_state_folders_are_refused(tmp_path):
    def refused(state: Path) -> str:
        command = [sys.executable, "-m", "gt.server", "-p", "1024", "--state", str(state)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1
        return done.stderr

    (tmp_path / "foreign").mkdir(mode=0o700)
    (tmp_path / "foreign" / "journal-00000001").write_text("dear diary, " * 10)
    assert "is no journal of gt" in refused(tmp_path / "foreign")
    (tmp_path / "file").write_text("")
    assert "file" in refused(tmp_path / "file")
    (tmp_path / "open").mkdir(mode=0o755)
    assert "make it private with chmod 700" in refused(tmp_path / "open")
    (tmp_path / "open").chmod(0o700)
    (tmp_path / "link").symlink_to(tmp_path / "open")
    assert "it is a link" in refused(tmp_path / "link")
    (tmp_path / "open" / "key").write_text("gt1-" + "00" * 32)
    assert "make it private with chmod 600" in refused(tmp_path / "open")
    with cluster(0, "--state", str(tmp_path / "state")) as (_, processes):
        assert f"in use by another gt process ({processes[0].pid})" in refused(tmp_path / "state")
    later = only_segment(tmp_path / "state")
    content = bytearray(later.read_bytes())
    content[8] = 99
    later.write_bytes(content)
    assert "its format has version 99" in refused(tmp_path / "state")


def test_a_full_disk_is_reported_and_sessions_continue(tmp_path):
    """The server retries to write its journal, and warns the sessions."""
    state = tmp_path / "state"
    with cluster(1, "--state", str(state)) as (address, processes):
        session = Session(address)
        # From now on writes fail, as on a full disk.
        limit = only_segment(state).stat().st_size
        resource.prlimit(processes[0].pid, resource.RLIMIT_FSIZE, (limit, limit))
        assert session.step() == "21.0"
        time.sleep(0.3)
        assert session.step() == "27.0"
        # Later sessions are warned, too. The journal on the disk is out of date and is not used.
        late = Session(address)
        kill(processes.pop(0))
        processes.insert(0, start_server(address, state))
        assert "the server was started anew" in session.step()
        assert "cannot write its state" in session.end()
        assert "cannot write its state" in late.end()
