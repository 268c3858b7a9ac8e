"""What operators do: end, pause and resume sessions, weigh users, revoke keys; and users do."""

import signal
import time

import pytest
from processes import cluster, embedded_only, one_engine_only, run_gt, start_program, write_key

pytestmark = [embedded_only, one_engine_only]


@pytest.fixture
def keys(tmp_path):
    """Return the options with the cluster's key, an operator's, and a function for users' keys."""
    path, operator = tmp_path / "cluster.key", tmp_path / "operator.key"
    write_key(path, run_gt("key").stdout)
    write_key(operator, run_gt("key", "--role", "operator", "--of-file", str(path)).stdout)

    def of_user(user: str) -> str:
        return run_gt("key", "--user", user, "--of-file", str(path)).stdout.strip()

    return ("--key-file", str(path)), ("--key-file", str(operator)), of_user


def counter(address: str, key: str):
    """Start a program that prints a number after each step, and wait for the first."""
    process = start_program("sessions/counter", address, GT_KEY=key)
    assert process.stdout.readline() == "0\n", process.stderr.read()
    return process


def count_within(process, seconds: float) -> int:
    """Return how many numbers a program prints within some seconds, if it prints one at all."""
    import selectors

    chooser, count = selectors.DefaultSelector(), 0
    chooser.register(process.stdout, selectors.EVENT_READ)
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0 and chooser.select(left):
        process.stdout.readline()
        count += 1
    return count


def test_operators_weigh_pause_resume_and_end(keys):
    options, operator, of_user = keys
    with cluster(1, *options, worker_options=options) as (address, _):
        at = ("--server", address, *operator)
        program = counter(address, of_user("ada"))
        try:
            done = run_gt("weight", "ada", "3", *at)
            assert done.stdout == "the weight of user 'ada' is 3 now\n", done
            done = run_gt("weight", "adda", "3", *at)
            assert done.returncode == 1 and "did you mean 'ada'?" in done.stderr
            done = run_gt("weight", "ada", "0", *at)
            assert done.returncode == 2 and "got 0, expected 1 to" in done.stderr
            done = run_gt("sessions", "pause", "--user", "ada", *at)
            assert done.stdout.startswith("paused counter.py ada@"), done
            count_within(program, 0.5)
            assert count_within(program, 0.5) == 0
            done = run_gt("sessions", "resume", "--user", "ada", *at)
            assert done.stdout.startswith("resumed counter.py ada@"), done
            assert count_within(program, 1) > 0
            done = run_gt("sessions", "end", "#1", address, "--user", "eve", *operator)
            assert done.returncode == 1, done
            assert "there is no session '#1' of user 'eve'" in done.stderr
            done = run_gt("sessions", "end", "#1", address, "--user", "ada", *operator)
            assert done.stdout.startswith("ended the session counter.py ada@"), done
            _, errors = program.communicate(timeout=20)
            assert "an operator has ended it" in errors
            assert "an operator has paused the session" in errors
        finally:
            program.kill()
            program.wait()


def test_users_operate_on_sessions_of_their_own_alone(keys):
    options, operator, of_user = keys
    with cluster(1, *options, worker_options=options) as (address, _):
        program = counter(address, of_user("ada"))
        try:
            for command in (
                ("weight", "ada", "3", "--server", address),
                ("sessions", "pause", "--user", "bob", "--server", address),
                ("sessions", "end", "#1", address, "--user", "bob"),
                ("worker", "drain", "w0", "--server", address),
            ):
                done = run_gt(*command, GT_KEY=of_user("ada"))
                assert done.returncode == 1, done
                assert "the key is of the user 'ada', who may pause, resume, end and" in done.stderr
            pause = ("sessions", "pause", "--server", address, "#1")
            resume = ("sessions", "resume", "--server", address, "#1")
            done = run_gt(*pause, GT_KEY=of_user("bob"))
            assert done.returncode == 1, done
            assert "there is no session '#1' of user 'bob'" in done.stderr, done
            assert "ada" not in done.stderr, done
            done = run_gt(*pause, GT_KEY=of_user("ada"))
            assert done.stdout.startswith("paused counter.py ada@"), done
            count_within(program, 0.5)
            assert count_within(program, 0.5) == 0
            done = run_gt(*resume, GT_KEY=of_user("ada"))
            assert done.stdout.startswith("resumed counter.py ada@"), done
            assert count_within(program, 1) > 0
            weigh = ("sessions", "weigh", "#1", "4", "--server", address)
            done = run_gt(*weigh, GT_KEY=of_user("bob"))
            assert done.returncode == 1 and "no session '#1' of user 'bob'" in done.stderr, done
            done = run_gt(*weigh, GT_KEY=of_user("ada"))
            assert done.stdout.startswith("the weight of counter.py ada@"), done
            assert "among the sessions of its user is 4 now" in done.stdout
            done = run_gt("sessions", "weigh", "#1", "0", "--server", address)
            assert done.returncode == 2 and "got 0, expected 1 to 1000000" in done.stderr
            assert run_gt(*pause, *operator).returncode == 0
            done = run_gt(*resume, GT_KEY=of_user("ada"))
            assert done.returncode == 1, done
            assert "an operator has paused the session counter.py ada@" in done.stderr, done
            command = ("sessions", "end", "#1", address, "--user", "ada")
            done = run_gt(*command, GT_KEY=of_user("ada"))
            assert done.stdout.startswith("ended the session counter.py ada@"), done
            _, errors = program.communicate(timeout=20)
            assert "its user has ended it" in errors and "its user has paused" in errors
        finally:
            program.kill()
            program.wait()


def test_clients_and_watchers_may_not_operate(tmp_path, keys):
    options, _, _ = keys
    with cluster(0, *options) as (address, _):
        for role in ("client", "watcher"):
            key = tmp_path / f"{role}.key"
            write_key(key, run_gt("key", "--role", role, "--of-file", options[1]).stdout)
            done = run_gt("weight", "ada", "3", "--server", address, "--key-file", str(key))
            assert done.returncode == 1, done
            assert f"this key is for a {role}, a key for an operator is needed" in done.stderr


def test_without_a_name_or_a_user_nothing_is_paused():
    done = run_gt("sessions", "pause")
    assert done.returncode == 2
    assert "neither a session's name nor --user USER is given" in done.stderr


def test_revoked_users_lose_their_sessions_and_get_no_new_ones(tmp_path, keys):
    options, _, of_user = keys
    policy = tmp_path / "policy.yaml"
    policy.write_text("default: {}\n")
    started = (*options, "--policy", str(policy))
    with cluster(1, *started, worker_options=options) as (address, (server, *_)):
        program = counter(address, of_user("eve"))
        policy.write_text("revoked: [{user: eve, heir: ada}]\n")
        server.send_signal(signal.SIGHUP)
        _, errors = program.communicate(timeout=20)
        assert "the key of user 'eve' is revoked by the server's policy" in errors
        again = start_program("sessions/counter", address, GT_KEY=of_user("eve"))
        _, errors = again.communicate(timeout=20)
        assert again.returncode == 1 and "is revoked by the server's policy" in errors
        other = counter(address, of_user("ada"))
        other.kill()
        other.communicate()
