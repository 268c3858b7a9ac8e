"""Named sessions: they are detached, attached to, and continue when their programs die."""

import signal
import subprocess
import time
from contextlib import contextmanager

import gt
import pytest
from processes import (
    cluster,
    embedded_only,
    one_engine_only,
    program_command,
    run_gt,
    run_program,
    run_python,
    unsharded_only,
    write_key,
)
from training import start_server

# These tests start their own servers.
pytestmark = [embedded_only, unsharded_only, one_engine_only]

STEPS = 60


@pytest.fixture(scope="module")
def served():
    with cluster(2) as (address, _):
        yield address


@pytest.fixture(autouse=True)
def own_session():
    """End the sessions of a test; the next one starts workers in this process again."""
    yield
    gt.disconnect()
    gt.workers(1)


def train(address: str, name: str, dies_after: int = -1) -> str:
    """Run a program that trains for STEPS steps, from what its session keeps; return its output."""
    done = run_program("sessions/resuming", address, name, STEPS, dies_after)
    assert done.returncode == (-signal.SIGKILL if dies_after >= 0 else 0), done
    return done.stdout


def test_a_killed_script_goes_on_at_the_step_that_it_kept_bit_for_bit(served):
    expected = train(served, "whole")
    assert expected.startswith("begins at 0\n")
    assert train(served, "killed", 11) == "begins at 0\n"
    assert train(served, "killed", 40) == "begins at 12\n"
    assert train(served, "killed").splitlines() == ["begins at 41", *expected.splitlines()[1:]]


def test_sessions_go_on_when_workers_and_the_server_die_meanwhile(tmp_path):
    with cluster(2, "--state", str(tmp_path)) as (address, processes):
        expected = train(address, "whole").splitlines()[1:]
        train(address, "killed", 11)
        # Without a client: a worker dies, and then the server.
        worker = processes.pop()
        worker.kill()
        worker.communicate()
        train(address, "killed", 25)
        server = processes.pop(0)
        server.kill()
        server.communicate()
        processes.insert(0, start_server(address, tmp_path))
        assert train(address, "killed").splitlines()[1:] == expected
        listed = run_gt("sessions", address).stdout
        assert "killed" in listed and "whole" in listed and "detached for" in listed


def test_a_session_is_detached_and_attached_to_from_another_process(served):
    gt.connect(served)
    x = gt.arange(6).reshape(2, 3)
    other = gt.ones(3)
    gt.keep("state", {"x": x, "again": x, "turned": x.T, "n": [1, "a", (2.5, None)]})
    x += 100  # What is kept are the values of that moment.
    assert gt.detach("moved") is None
    assert (gt.ones(2) + 1).tolist() == [2.0, 2.0], "this process has a new session"
    for use in (lambda: other.tolist(), lambda: (other + 1).tolist(), lambda: other + gt.ones(3)):
        with pytest.raises((ConnectionError, RuntimeError), match="was detached as 'moved'"):
            use()
    code = (
        "import sys, gt; assert gt.attach('moved', address=sys.argv[1])\n"
        "state = gt.kept('state')\n"
        "assert state['x'] is state['again'] and state['n'] == [1, 'a', (2.5, None)]\n"
        "print(gt.kept(), state['x'].tolist(), (state['turned'] * 2).tolist())\n"
        "gt.keep('more', state['x'] + 1)"
    )
    done = run_python(code, served)
    expected = "['state'] [[0, 1, 2], [3, 4, 5]] [[0, 6], [2, 8], [4, 10]]\n"
    assert done.stdout == expected, done
    assert gt.attach("moved") and gt.kept() == ["more", "state"]
    assert gt.kept("more").tolist() == [[1, 2, 3], [4, 5, 6]]
    assert gt.unkeep("state") and not gt.unkeep("state")
    assert gt.kept("state", 7) == 7
    with pytest.raises(KeyError, match="nothing is kept under 'state', the names are: 'more'"):
        gt.kept("state")
    # A name that the session has stays.
    gt.detach()
    assert gt.attach("moved") and gt.kept() == ["more"]


def bytes_held() -> int:
    gt.synchronize()
    return sum(worker["bytes"] for worker in gt.status().workers)


def test_what_is_not_kept_is_freed():
    with cluster(1) as (address, _):
        gt.connect(address)
        kept, lost = gt.ones(1000), gt.ones(100_000)
        gt.keep("kept", kept)
        gt.detach("run")
        assert bytes_held() == 4000
        del lost
        assert gt.attach("run")
        again = [gt.kept("kept"), gt.kept("kept")]
        del kept, again
        assert bytes_held() == 4000, "a tensor stays while a name has it"
        gt.keep("kept", gt.zeros(10))
        assert bytes_held() == 40
        gt.unkeep("kept")
        assert bytes_held() == 0


def test_large_data_outlives_its_process(served):
    code = (
        "import sys, os, gt, numpy as np\n"
        "gt.attach('large', or_create=True, address=sys.argv[1])\n"
        "gt.keep('x', gt.from_numpy(np.arange(1 << 20)))\n"
        "gt.synchronize(); os.kill(os.getpid(), 9)"
    )
    assert run_python(code, served).returncode == -signal.SIGKILL
    assert gt.attach("large", address=served)
    assert gt.kept("x").sum().item() == (1 << 20) * ((1 << 20) - 1) // 2
    # The same for a session that was begun without a name, whose data is in shared memory.
    gt.connect(served)
    gt.keep("y", gt.ones(1 << 20))
    gt.detach("given")
    assert gt.attach("given") and gt.kept("y").sum().item() == 1 << 20


@contextmanager
def holding(address: str, name: str):
    """Yield a program that has a named session until it reads a line."""
    holder = subprocess.Popen(
        program_command("sessions/holder", address, name),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with holder:
        try:
            assert holder.stdout.readline() == "has it\n"
            yield holder
        finally:
            holder.kill()


def test_the_second_reads_who_has_it_and_the_first_that_it_was_taken(served):
    with holding(served, "held") as holder:
        message = r"'held' is held by holder.py \S+ \(process \d+\)"
        with pytest.raises(ConnectionError, match=message):
            gt.attach("held", address=served)
        assert gt.attach("held", address=served, take_over=True)
        assert gt.kept("number") == 3
        _, error = holder.communicate("\n", timeout=60)
    assert holder.returncode == 1 and "was taken over by" in error


def test_one_that_is_started_again_waits_for_the_end_of_the_first(served):
    with holding(served, "restarted") as holder:
        # A holder that lives has it for good; one whose machine is suspended has not.
        with pytest.raises(ConnectionError, match="is held by"):
            gt.attach("restarted", or_create=True, address=served)
        holder.send_signal(signal.SIGSTOP)
        assert gt.attach("restarted", or_create=True, address=served)
        assert gt.kept("number") == 3


def test_one_that_gives_up_waiting_gets_no_session(served):
    with holding(served, "waited for") as holder:
        waiting = subprocess.Popen(program_command("sessions/holder", served, "waited for"))
        time.sleep(2)
        waiting.kill()
        waiting.wait()
        assert holder.communicate("\n", timeout=60)[0] == "6.0\n"
    assert gt.attach("waited for", address=served) and gt.kept("number") == 3
    assert gt.attach("waited for"), "a cell of a notebook that runs again"


def test_private_sessions_and_their_ends(served):
    gt.connect(served)
    gt.keep("x", gt.ones(2))
    token = gt.detach("mine", private=True)
    assert len(token) == 32
    for given in (None, "0" * 32, token[:-1] + ("0" if token[-1] != "0" else "1")):
        with pytest.raises(ConnectionError, match="the session 'mine' is private"):
            gt.attach("mine", token=given, take_over=True)
    for wrong in (7, "abc", "g" * 32):
        with pytest.raises(ValueError, match="expected the 32 hexadecimal digits"):
            gt.attach("mine", token=wrong)
    assert ", private" in run_gt("sessions", served).stdout
    assert "is private" in run_gt("sessions", "end", "mine", served).stderr
    ended = run_gt("sessions", "end", "mine", "--token", token, served)
    assert ended.stdout == "ended the session 'mine'\n", ended
    with pytest.raises(ConnectionError, match="there is no session 'mine'"):
        gt.attach("mine", token=token)
    assert "there is no session 'mine'" in run_gt("sessions", "end", "mine", served).stderr


def test_names_belong_to_users_and_the_policy_ends_idle_sessions(tmp_path):
    path, policy = tmp_path / "key", tmp_path / "policy.yaml"
    write_key(path, run_gt("key").stdout)
    policy.write_text("users: {eve: {sessions: 1, idle: 3s}}\n")
    made = {
        user: run_gt("key", "--user", user, "--of-file", str(path)).stdout.strip()
        for user in ("ada", "eve")
    }
    code = (
        "import sys, gt\n"
        "address, *names = sys.argv[1:]\n"
        "for name in names:\n"
        "    print(gt.attach(name, or_create=True, address=address), gt.kept('x', None))\n"
        "    gt.keep('x', name)"
    )
    options = ("--key-file", str(path), "--policy", str(policy))
    with cluster(1, *options, worker_options=("--key-file", str(path))) as (address, _):

        def attach(user: str, *names: str):
            return run_python(code, address, *names, GT_KEY=made[user])

        def listed(user: str) -> str:
            return run_gt("sessions", address, GT_KEY=made[user]).stdout

        assert attach("ada", "run", "other").stdout == "False None\n" * 2
        assert attach("eve", "run").stdout == "False None\n", "another session of this name"
        assert attach("eve", "run").stdout == "True run\n"
        assert attach("ada", "other").stdout == "True other\n"
        assert listed("ada").count("detached for") == 2 and "all clients" not in listed("ada")
        assert listed("eve").count("detached for") == 1
        # A detached session counts, and is ended by the policy.
        refused = attach("eve", "second").stderr
        assert "user eve may have 1 sessions at a time, and has them: run eve@" in refused
        until = time.monotonic() + 30
        while "run" in listed("eve") and time.monotonic() < until:
            time.sleep(0.2)
        assert listed("eve") == "there are no sessions of user eve\n"
        assert attach("eve", "second").stdout == "False None\n"
        assert listed("ada").count("detached for") == 2


def test_sessions_of_workers_in_this_process_keep_and_are_not_detached():
    code = (
        "import gt\n"
        "for use in (lambda: gt.attach('run'), lambda: gt.detach('run')):\n"
        "    try: use()\n"
        "    except ConnectionError as error: print(error)\n"
        "gt.keep('x', gt.ones(2)); print(gt.kept('x').tolist())"
    )
    done = run_python(code)
    assert "attach: this program has not connected to a server\n  hint: gt.connect(" in done.stdout
    assert "ends with this process\n  hint: start a server with `gt server`" in done.stdout
    assert done.stdout.endswith("[1.0, 1.0]\n"), done


def test_bad_names_and_values(served):
    gt.connect(served)
    for name, reason in [("", "is empty"), ("a\nb", "character"), ("x" * 65, "65 characters")]:
        with pytest.raises(ValueError, match=reason):
            gt.attach(name)
        with pytest.raises(ValueError, match=reason):
            gt.detach(name)
    with pytest.raises(TypeError, match="the session has no name yet"):
        gt.detach()
    gt.attach("taken", or_create=True)
    gt.connect(served)
    with pytest.raises(RuntimeError, match=r"there is a session 'taken' .* already"):
        gt.detach("taken")
    assert gt.ones(2).tolist() == [1.0, 1.0], "the session is as before"
    for name, reason in [("", "is empty"), ("a\nb", "character"), ("x" * 201, "201 characters")]:
        with pytest.raises(ValueError, match=reason):
            gt.keep(name, 1)
    with pytest.raises(TypeError, match="the name is 7, expected a string"):
        gt.keep(7, 1)
    with pytest.raises(TypeError, match=r"keep: generator at 'a' cannot be kept"):
        gt.keep("x", {"a": (n for n in ())})
    with pytest.raises(RuntimeError, match="are allowed"):
        gt.keep("x", "x" * (65 << 20))
    # As torch.detach.
    x = gt.ones(2, requires_grad=True)
    assert not gt.detach(x * 2).requires_grad
