"""A server with `--state` is killed and started again: sessions go on, and numbers are the same."""

import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import cluster, embedded_only, one_engine_only, run_python, unsharded_only
from training import GPT, SHARDED, TRAINING, Training, start_server, undisturbed

# They start servers of their own.
pytestmark = [embedded_only, unsharded_only, one_engine_only]


def kill(process: subprocess.Popen) -> str:
    """Kill a process; give what it wrote to stderr."""
    process.kill()
    return process.communicate()[1] or ""


@pytest.mark.parametrize(
    ("code", "workers", "steps"),
    [(TRAINING, 1, 1500), (TRAINING, 2, 1500), (SHARDED, 2, 1500), (GPT, 2, 420)],
    ids=["one", "two", "cut", "gpt"],
)
def test_training_goes_on_with_the_same_numbers_when_the_server_is_killed(
    code, workers, steps, tmp_path
):
    expected = undisturbed(code, workers, steps)
    with cluster(workers, "--state", str(tmp_path)) as (address, processes):
        training = Training(code, address, steps)
        for part in (1, 2, 3):
            training.wait_for(steps // 400 * 100 * part)
            kill(processes.pop(0))
            processes.insert(0, start_server(address, tmp_path))
        assert training.end() == expected
    assert training.longest_gap() < 10
    assert all("was lost" in line or "again" in line for line in training.errors), training.errors


SESSION = """
import sys
import gt
gt.connect(sys.argv[1])
x = gt.arange(6.0)
print(x.sum().item(), flush=True)
for line in sys.stdin:
    try:
        x = x + 1
        print(x.sum().item(), flush=True)
    except Exception as error:
        print(type(error).__name__, str(error).replace("\\n", " "), flush=True)
"""


class Session:
    """A program that adds one to its tensor at each line that it is given."""

    def __init__(self, address: str, code: str = SESSION) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout.readline() == "15.0\n"

    def step(self) -> str:
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        assert select.select([self.process.stdout], [], [], 60)[0], "nothing comes for a minute"
        return self.process.stdout.readline().strip()

    def end(self) -> str:
        """End it; give what it wrote to stderr."""
        return self.process.communicate("", timeout=30)[1]


def test_many_sessions_go_on_and_new_ones_begin(tmp_path):
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
        # Nothing is left of them.
        done = run_python(
            "import sys, gt; gt.connect(sys.argv[1]); s = gt.status();"
            "print(len(s.sessions), sum(w['bytes'] for w in s.workers))",
            address,
        )
        assert done.stdout == "1 0\n", done


def test_a_server_that_is_stopped_goes_on_as_well(tmp_path):
    with cluster(1, "--state", str(tmp_path)) as (address, processes):
        session = Session(address)
        server = processes.pop(0)
        server.terminate()
        assert "stopped" in server.communicate(timeout=20)[0]
        processes.insert(0, start_server(address, tmp_path))
        assert session.step() == "21.0"
        session.end()


def test_what_asks_about_the_moment_is_not_missed_in_the_journal(tmp_path):
    """A client's acknowledged messages end with such, of which there is no record."""
    code = SESSION.replace("x = x + 1", "[gt.status() for _ in range(70)]; x = x + 1")
    with cluster(1, "--state", str(tmp_path)) as (address, processes):
        session = Session(address, code)
        for answer in ("21.0", "27.0", "33.0"):
            assert session.step() == answer
            kill(processes.pop(0))
            processes.insert(0, start_server(address, tmp_path))
        session.end()


def test_a_server_that_stands_still_goes_on(tmp_path):
    """As after a suspended machine: all its peers have given it up meanwhile."""
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
    """What the lost worker had is made again from the copy on the other one."""
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


def test_a_client_that_ended_meanwhile_is_freed(tmp_path):
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


@pytest.mark.parametrize("damage", ["cut", "zeros"])
def test_a_journal_is_used_up_to_its_damage(damage, tmp_path):
    with cluster(1, "--state", str(tmp_path)) as (address, processes):
        session = Session(address)
        assert session.step() == "21.0"
        kill(processes.pop(0))
        segment = only_segment(tmp_path)
        whole = segment.read_bytes()
        if damage == "cut":
            # In the middle of a record that its client sends again.
            segment.write_bytes(whole + b"the beginning of a record")
        else:
            segment.write_bytes(whole + bytes(4096))
        server = start_server(address, tmp_path)
        processes.insert(0, server)
        assert session.step() == "27.0"
        errors = session.end()
        told = kill(processes.pop(0))
        assert "ends early" in told, (told, errors)


def test_a_session_whose_records_are_damaged_is_told_so_and_others_go_on(tmp_path):
    with cluster(1, "--state", str(tmp_path)) as (address, processes):
        session = Session(address)
        for _ in range(400):
            # So much is acknowledged: its client does not send it again.
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


SAVING = """
import sys
from pathlib import Path
import gt
gt.connect(sys.argv[1])
x = gt.arange(6.0)
saved = Path(sys.argv[2])
for line in sys.stdin:
    gt.checkpoint.save(saved, {"x": x}).wait()
    x = x + 1
    saved.rename(saved.with_name(f"moved-{x[0].item():.0f}"))
    print(x.sum().item(), flush=True)
"""


def test_what_was_saved_is_not_saved_again(tmp_path):
    """A file that was written, and that the program moved since, does not come back."""
    state, saved = tmp_path / "state", tmp_path / "saved"
    root = ["--data-root", str(tmp_path)]
    with cluster(1, "--state", str(state), *root, worker_options=root) as (address, processes):
        program = subprocess.Popen(
            [sys.executable, "-c", SAVING, address, str(saved)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
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


def test_what_is_no_journal_is_refused(tmp_path):
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


def test_a_disk_that_fills_is_told_and_computing_goes_on(tmp_path):
    """A journal that cannot be written is tried again; sessions hear of it."""
    state = tmp_path / "state"
    with cluster(1, "--state", str(state)) as (address, processes):
        session = Session(address)
        # Whatever is written from now on fails, as on a disk without room.
        import resource

        limit = only_segment(state).stat().st_size
        resource.prlimit(processes[0].pid, resource.RLIMIT_FSIZE, (limit, limit))
        assert session.step() == "21.0"
        time.sleep(0.3)
        assert session.step() == "27.0"
        # Who comes later hears of it, too. What was on the disk is out of date, and not used.
        late = Session(address)
        kill(processes.pop(0))
        processes.insert(0, start_server(address, state))
        assert "the server was started anew" in session.step()
        assert "cannot write its state" in session.end()
        assert "cannot write its state" in late.end()
