"""A server and all of its workers die together, and resume from their state folders."""

import re
import shutil

import pytest
from power_cut import durable
from processes import embedded_only, one_engine_only, run_gt, unsharded_only
from test_restart import Session
from training import SHARDED, TRAINING, Training, undisturbed

# These tests start their own servers.
pytestmark = [embedded_only, unsharded_only, one_engine_only]


@pytest.mark.parametrize(
    ("name", "workers", "steps"),
    [(TRAINING, 1, 4000), (SHARDED, 2, 4000)],
    ids=["one", "sharded"],
)
def test_training_resumes_with_the_same_bits_after_a_power_cut(name, workers, steps, tmp_path):
    expected = undisturbed(name, workers, steps)
    with durable(workers, tmp_path) as running:
        training = Training(name, running.address, steps)
        for part in (1, 2, 3):
            training.wait_for(steps // 400 * 100 * part)
            if part > 1:
                running.wait_for_snapshot()
            running.kill()
            running.start()
        assert training.end() == expected
    counts = [
        int(count) for count in re.findall(r"(\d+) snapshots in .* are taken up", running.errors)
    ]
    assert max(counts) > 0, running.errors
    assert all("was lost" in line or "again" in line for line in training.errors), training.errors


@pytest.mark.parametrize(("name", "workers"), [(TRAINING, 1), (SHARDED, 2)], ids=["one", "sharded"])
def test_training_resumes_when_all_workers_die_and_the_server_lives(name, workers, tmp_path):
    expected = undisturbed(name, workers, 4000)
    with durable(workers, tmp_path) as running:
        training = Training(name, running.address, 4000)
        for part in (1, 2, 3):
            training.wait_for(1000 * part)
            running.wait_for_snapshot()
            running.restart_workers()
        assert training.end() == expected
    assert "are taken up again" in running.errors, running.errors
    # With one worker, the server itself keeps the snapshots.
    has_waited = any("waits for the workers" in line for line in training.errors)
    assert has_waited == (workers > 1), training.errors


def test_a_session_whose_workers_do_not_return_ends(tmp_path):
    with durable(2, tmp_path, "--worker-wait", "4") as running:
        training = Training(TRAINING, running.address, 100_000)
        running.wait_for_snapshot()
        training.wait_for(2000)
        running.kill(first=1)
        assert training.process.wait(timeout=60) != 0
        for thread in training.threads:
            thread.join()
        training.process.stdout.close()
        training.process.stderr.close()
    errors = "".join(training.errors)
    assert "waits for the workers 'w" in errors, errors
    assert "were not started again within 4 s" in errors, errors


def test_a_session_whose_folders_are_lost_resumes_or_raises(tmp_path):
    with durable(2, tmp_path) as running:
        session = Session(running.address)
        assert session.step() == "21.0"
        running.kill()
        for number in range(2):
            shutil.rmtree(tmp_path / f"w{number}")
        running.start()
        answer = session.step()
        # Without a snapshot so far, the whole session is in the journal.
        assert answer == "27.0" or "could not be restored" in answer, answer
        session.end()


def test_a_torn_state_is_reported_and_its_complete_records_are_used(tmp_path):
    with durable(1, tmp_path) as running:
        training = Training(TRAINING, running.address, 4000)
        # The record that completes a snapshot follows its values.
        running.wait_for_snapshot(least=running.wait_for_snapshot())
        running.kill()
        (journal,) = (tmp_path / "w0").glob("journal-*")
        with journal.open("ab") as file:
            file.write(b"torn")
        running.start()
        assert training.end() == undisturbed(TRAINING, 1, 4000)
    assert "4 bytes are lost" in running.errors and "1 snapshots in" in running.errors


def test_snapshots_of_unknown_sessions_are_reported_and_dropped(tmp_path):
    with durable(1, tmp_path) as running:
        session = Session(running.address)
        training = Training(TRAINING, running.address, 1500)
        training.end()
        running.kill()
        session.process.kill()
        session.process.communicate()
        shutil.rmtree(tmp_path / "server")
        running.start()
        session = Session(running.address)
        assert session.step() == "21.0"
        session.end()
    assert "does not know any more: they are dropped" in running.errors


def test_a_state_folder_is_private_and_used_by_one_worker(tmp_path):
    with durable(1, tmp_path) as running:
        host, port = running.address.split(":")
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
