"""A worker that is drained hands its sessions over, and they lose nothing."""

import re
import signal
import subprocess
import time

import pytest
from processes import cluster, embedded_only, one_engine_only, run_gt, unsharded_only, write_key
from training import SHARDED, TRAINING, Training, start_worker, undisturbed

# These tests start their own servers.
pytestmark = [embedded_only, unsharded_only, one_engine_only]

#: More than a program does while a command starts.
STEPS = {TRAINING: 5000, SHARDED: 1000}


def drain(worker: str, address: str, *options: str):
    return run_gt("worker", "drain", worker, "--server", address, *options)


def ended(worker: subprocess.Popen) -> str:
    """Return the last line of a worker that has ended well."""
    out, errors = worker.communicate(timeout=30)
    # Without --state of the server, a worker that has it is warned.
    lines = [line for line in errors.splitlines() if "--state" not in line]
    assert (worker.returncode, lines) == (0, []), errors
    return out.splitlines()[-1]


@pytest.mark.parametrize("by", ["command", "signal"])
@pytest.mark.parametrize("name", [TRAINING, SHARDED], ids=["plain", "sharded"])
def test_training_continues_with_the_same_bits_without_the_drained_worker(name, by):
    expected = undisturbed(name, 2, STEPS[name])
    with cluster(2) as (address, processes):
        training = Training(name, address, STEPS[name])
        training.wait_for(200)
        worker = processes.pop(1)
        if by == "command":
            done = drain("w0", address)
            text = r"the worker 'w0' is drained, after \d+\.\d\d s: 1 session continues on other "
            assert re.fullmatch(text + "workers\n", done.stdout), done
            assert (done.returncode, done.stderr) == (0, "")
        else:
            worker.send_signal(signal.SIGTERM)
        assert ended(worker) == "gt worker: w0 drained"
        assert training.end() == expected
    assert training.errors == []


def test_two_workers_are_replaced_one_after_the_other():
    expected = undisturbed(SHARDED, 2, STEPS[SHARDED])
    with cluster(2) as (address, processes):
        training = Training(SHARDED, address, STEPS[SHARDED])
        for number in range(2):
            training.wait_for(100 + 200 * number)
            processes.append(start_worker(address, f"new{number}"))
            assert drain(f"w{number}", address).returncode == 0
            assert ended(processes.pop(1)) == f"gt worker: w{number} drained"
        assert training.end() == expected
    assert [line for line in training.errors if "lost" in line or "restored" in line] == []


def test_the_last_worker_without_a_folder_is_refused():
    with cluster(1) as (address, processes):
        training = Training(TRAINING, address, STEPS[TRAINING])
        training.wait_for(100)
        done = drain("w0", address)
        assert done.returncode == 1 and done.stdout == ""
        assert "gt worker drain: the worker 'w0' is the last one" in done.stderr, done
        assert "hint: start another worker first, or start this one with --state" in done.stderr
        training.end()
        assert processes[1].poll() is None
    assert training.errors == []


def test_a_signal_ends_the_last_worker_without_a_folder_at_once():
    with cluster(1) as (address, processes):
        training = Training(TRAINING, address, 100_000)
        training.wait_for(100)
        worker = processes.pop(1)
        begin = time.monotonic()
        worker.terminate()
        out, errors = worker.communicate(timeout=20)
        assert worker.returncode == 0 and out.splitlines()[-1] == "gt worker: w0 stopped"
        assert "the worker ends without handing over what it has" in errors
        assert "is the last one" in errors and time.monotonic() - begin < 5
        training.kill()


def test_the_last_worker_is_drained_into_its_folder_and_continues_from_it(tmp_path):
    expected = undisturbed(TRAINING, 1, STEPS[TRAINING])
    options = ("--state", str(tmp_path / "w0"))
    with cluster(1, worker_options=options) as (address, processes):
        training = Training(TRAINING, address, STEPS[TRAINING])
        training.wait_for(200)
        done = drain("w0", address)
        text = "its --state has the tensors of 1 session, which waits for it to be started again\n"
        assert done.returncode == 0 and done.stdout.endswith(text), done
        assert ended(processes.pop(1)) == "gt worker: w0 drained"
        steps = len(training.lines)
        time.sleep(1)
        assert len(training.lines) - steps < 100, "there is no worker"
        processes.append(start_worker(address, "w0", *options))
        assert training.end() == expected
    assert any("started again: they have its tensors" in line for line in training.errors)
    assert not any("lost" in line for line in training.errors), training.errors


def test_an_unknown_worker_is_refused_with_near_names():
    with cluster(2) as (address, _):
        done = drain("w7", address)
        assert done.returncode == 1
        assert "there is no worker 'w7': the workers are 'w0', 'w1'" in done.stderr
        assert "hint: did you mean 'w0'?" in done.stderr
        # Nothing uses it: it ends at once, and is named by its number.
        done = drain("1", address)
        assert "the worker 'w1' is drained" in done.stdout, done


def test_draining_takes_an_operators_key(tmp_path):
    path = tmp_path / "cluster.key"
    write_key(path, run_gt("key").stdout)
    keys = {}
    for role in ("client", "watcher", "operator"):
        keys[role] = tmp_path / f"{role}.key"
        write_key(keys[role], run_gt("key", "--role", role, "--of-file", str(path)).stdout)
    user = tmp_path / "user.key"
    write_key(user, run_gt("key", "--user", "ada", "--of-file", str(path)).stdout)
    options = ("--key-file", str(path))
    with cluster(2, *options, worker_options=options) as (address, _):
        done = drain("w0", address, "--key-file", str(user))
        assert done.returncode == 1
        text = "the user 'ada', who may pause, resume, end and weigh sessions of their own alone"
        assert text in done.stderr, done
        for role in ("client", "watcher"):
            done = drain("w0", address, "--key-file", str(keys[role]))
            assert done.returncode == 1
            text = f"this key is for a {role}, a key for an operator is needed"
            assert text in done.stderr and "gt key --role operator" in done.stderr, done
        of_operator = ("--key-file", str(keys["operator"]))
        # An operator may watch.
        top = run_gt("top", address, "--once", *of_operator)
        assert top.returncode == 0 and "w0" in top.stdout, top
        done = drain("w0", address, *of_operator)
        assert done.returncode == 0 and "'w0' is drained" in done.stdout, done


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--timeout", "soon"), "invalid number of seconds value: 'soon'"),
        (("--timeout", "-1"), "got -1, expected 0 to 86400 seconds"),
    ],
)
def test_wrong_options_of_a_drain(options, text):
    done = drain("w0", "localhost:1", *options)
    assert done.returncode == 2 and text in done.stderr, done


def test_a_worker_refuses_a_wrong_time_for_its_drain():
    done = run_gt("worker", "--drain-timeout", "-3")
    assert done.returncode == 2
    assert "--drain-timeout is -3, expected 0 to 86400 seconds" in done.stderr
