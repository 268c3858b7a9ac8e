"""The operator's policy: shares, limits, and errors in its file."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import gt
import pytest
from processes import cluster, embedded_only, run_gt, run_python, write_key

pytestmark = embedded_only

SHOW = "print([(s['name'], s['team'], round(s['share'], 3)) for s in gt.status().sessions])\n"


@pytest.fixture
def keys(tmp_path):
    """Return the options with the cluster's key, and a function that makes keys of users."""
    path = tmp_path / "key"
    write_key(path, run_gt("key").stdout)

    def of_user(user: str, team: str = "") -> str:
        return run_gt("key", "--user", user, "--team", team, "--of-file", str(path)).stdout.strip()

    return ("--key-file", str(path)), of_user


def policy(folder: Path, text: str) -> tuple[str, str]:
    (folder / "policy.yaml").write_text(text)
    return "--policy", str(folder / "policy.yaml")


def client(address: str, code: str, **environment: str):
    return run_python(f"import gt, time\ngt.connect('{address}')\n{code}", **environment)


def read_until(process, wanted: str) -> str:
    """Return a process's output up to a line that has the wanted text."""
    seen = ""
    for line in process.stdout:
        seen += line
        if wanted in line:
            return seen
    raise AssertionError(f"{wanted!r} is not in {seen!r}")


def test_shares_and_sessions_follow_the_file(tmp_path, keys):
    options, of_user = keys
    text = "users: {ada: {share: 3}, eve: {sessions: 1}}\nteams: {vision: {share: 4}}\n"
    with cluster(1, *options, *policy(tmp_path, text), worker_options=options) as (address, _):
        ada = client(address, "print(gt.ones(2).sum().item())\n" + SHOW, GT_KEY=of_user("ada"))
        wanted = r"2.0\n\[\('-c ada@\S+ #1', '', 1.0\)\]\n"
        assert re.fullmatch(wanted, ada.stdout), ada
        # Their team has 1 share and vision 4. Within the team, ada has 3 shares and the user
        # without a name has 1.
        nameless = gt.Session(address, key_file=options[1])
        with closing(nameless):
            eve = of_user("eve", "vision")
            twice = client(address, f"other = gt.Session({address!r})\n", GT_KEY=eve)
            assert twice.returncode == 1
            assert "user eve may have 1 sessions at a time, and has them: -c eve@" in twice.stderr
            shown = client(address, SHOW, GT_KEY=eve)
            assert re.search(r"'-c eve@\S+ #4', 'vision', 0\.8\)", shown.stdout), shown
            shown = client(address, SHOW, GT_KEY=of_user("ada"))
            assert re.search(r"'-c ada@\S+ #5', '', 0\.75\)", shown.stdout), shown


def test_a_user_is_charged_for_all_sessions(tmp_path, keys, monkeypatch):
    """The usage includes sessions that have ended; the log has the usage of each session."""
    options, of_user = keys
    text = "users: {ada: {share: 3, memory: 1GB}}\n"
    log = tmp_path / "log"
    monkeypatch.setenv("GT_INSTRUCTION_LOG", str(log))
    work = "a = gt.rand(500, 500)\nprint((a @ a).sum().item() > 0)\n"
    show = work + (
        "user, = [user for user in gt.status().users if user['user']]\n"
        "print(user['user'], user['team'], user['sessions'], user['weights'], user['share'],\n"
        "    user['memory_quotas'], user['device_seconds'] > 0, user['bytes'] >= 1_000_000)\n"
        "print(user['device_seconds'])\n"
    )
    with cluster(1, *options, *policy(tmp_path, text), worker_options=options) as (address, _):
        monkeypatch.delenv("GT_INSTRUCTION_LOG")
        seconds = []
        for _ in range(2):
            shown = client(address, show, GT_KEY=of_user("ada", "vision"))
            head, line, used = shown.stdout.splitlines()
            assert head == "True", shown
            assert line == "ada vision 1 (1, 3) 1.0 [('user ada', 1000000000)] True True", shown
            seconds.append(float(used))
        assert seconds[1] > seconds[0]
    ended = [line for line in log.read_text().splitlines() if "DISCONNECT" in line]
    wanted = r"user=ada team=vision device=\d+\.\d{3}s bytes=\d+ spilled=0 reason="
    assert re.search(wanted, ended[0])


def test_idle_sessions_are_warned_and_ended(tmp_path):
    options = policy(tmp_path, "default: {idle: 3s}\n")
    with cluster(1, *options) as (address, _):
        done = client(
            address, "print(gt.ones(1).item(), flush=True)\ntime.sleep(4)\ngt.ones(1).item()\n"
        )
    assert done.returncode == 1 and done.stdout == "1.0\n", done
    assert re.search(
        r"gt: warning: the session -c \S+@\S+ #1 has nothing to do and ends in", done.stderr
    )
    assert "ConnectionError" in done.stderr
    assert "it has had nothing to do for 3 s, as long as all without a user's key" in done.stderr


def test_a_session_ends_after_its_wall_time_and_others_continue(tmp_path, keys):
    options, of_user = keys
    text = "users: {ada: {wall: 2s}}\n"
    works = "while True: (gt.ones(8) + 1).sum().item()\n"
    with cluster(1, *options, *policy(tmp_path, text), worker_options=options) as (address, _):
        done = client(address, works, GT_KEY=of_user("ada"))
        assert done.returncode == 1 and "it has lasted 2 s, as long as user ada may" in done.stderr
        other = client(address, "print(gt.ones(3).sum().item())", GT_KEY=of_user("eve"))
        assert (other.stdout, other.stderr) == ("3.0\n", "")


def test_a_mistake_is_reported_and_the_policy_stays(tmp_path):
    options = policy(tmp_path, "default: {sessions: 5}\n")
    connects = "sessions = [gt.Session({address!r}) for _ in range(2)]\nprint(len(sessions))\n"
    with cluster(1, *options) as (address, (server, *_)):
        code = connects.format(address=address)
        assert client(address, code).stdout == "2\n"
        policy(tmp_path, "default:\n  sesions: 1\n")
        server.send_signal(signal.SIGHUP)
        read_until(server, "reloading the policy")
        assert client(address, code).stdout == "2\n", "the policy stays"
        policy(tmp_path, "default: {sessions: 2}\n")
        server.send_signal(signal.SIGHUP)
        read_until(server, "reloading the policy")
        time.sleep(0.5)
        refused = client(address, code)
        assert "may have 2 sessions at a time" in refused.stderr, refused
        server.terminate()
        errors = server.stderr.read()
    assert "policy.yaml:2:3: 'default.sesions' is not a known key" in errors
    assert "did you mean 'sessions'" in errors and "the policy stays as it was" in errors


def test_a_server_does_not_start_with_a_wrong_policy(tmp_path):
    for text, message in [
        (
            "users: {ada: {share: 0}}",
            "1:22: 'users.ada.share' is 0, expected a whole number from 1",
        ),
        ("policy: fare", "'policy' is 'fare', expected fair, fifo or priority"),
        ("default: {idle: soon}", "'default.idle' is 'soon', expected a time"),
    ]:
        done = run_gt("server", "-p", "1", *policy(tmp_path, text))
        assert done.returncode == 1 and message in done.stderr, done
    done = run_gt("server", "-p", "1", "--policy", str(tmp_path / "none.yaml"))
    assert done.returncode == 1 and "none.yaml: the policy cannot be read" in done.stderr


@pytest.mark.parametrize("name", ["fifo", "priority"])
def test_every_policy_computes_the_same_results(tmp_path, keys, name):
    options, of_user = keys
    text = f"policy: {name}\nusers: {{ada: {{priority: 1}}}}\n"
    code = "x = gt.ones(64, 64)\nfor _ in range(200): x = (x @ x) / 64\nprint(x.sum().item())\n"
    with cluster(1, *options, *policy(tmp_path, text), worker_options=options) as (address, _):
        program = f"import gt\ngt.connect({address!r})\n{code}"
        started = [
            subprocess.Popen(
                [sys.executable, "-c", program],
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "GT_KEY": of_user(user)},
            )
            for user in ("ada", "eve", "eve")
        ]
        assert [each.communicate(timeout=60)[0] for each in started] == ["4096.0\n"] * 3


def test_a_wait_is_explained(tmp_path):
    with cluster(1) as (address, _):
        flood = (
            f"import gt\ngt.connect({address!r})\nx = gt.ones(1200, 1200)\n"
            "print(x.sum().item(), flush=True)\n"
            "while True: x = (x @ x) * 0.001\n"
        )
        busy = subprocess.Popen([sys.executable, "-c", flood], stdout=subprocess.PIPE, text=True)
        try:
            assert busy.stdout.readline() == "1440000.0\n"
            time.sleep(0.5)
            port = address.split(":")[1]
            done = run_gt("explain-wait", "#1", "--port", port)
            assert done.returncode == 0, done
            name = re.match(r"-c \S+@\S+ #1 ", done.stdout)[0].strip()
            for other in (name, "1", name.split()[1], name.split("@")[1].split()[0]):
                same = run_gt("explain-wait", other, "--port", port)
                assert same.stdout.startswith(f"{name} "), same
            assert "Nobody else has work on its workers." in done.stdout
            assert re.search(r"Its share is 100 % .* has used [\d.]+ m?s of device", done.stdout)
            unknown = run_gt("explain-wait", "zoe", "--port", port)
            assert unknown.returncode == 1 and name in unknown.stderr
        finally:
            busy.kill()
            busy.communicate()


def test_parts_of_a_users_key_make_no_other_key(keys):
    options, of_user = keys
    with cluster(1, *options, worker_options=options) as (address, _):
        ada, bob = of_user("ada", "vision"), of_user("bob")
        secret, server, proof = (ada.rpartition(":")[2][part : part + 64] for part in (0, 64, 128))
        others = bob.rpartition(":")[2]
        forged = [
            f"gt1-client-{secret}{server}",
            f"gt1-worker-{secret}{server}",
            f"gt1-watcher-{secret}{server}",
            f"gt1-user-bob::{secret}{server}{proof}",
            f"gt1-user-ada::{secret}{server}{proof}",
            f"gt1-user-eve:vision:{secret}{server}{proof}",
            f"gt1-user-ada:vision:{secret}{server}{others[128:]}",
            f"gt1-user-ada:vision:{secret}{server}{'0' * 64}",
            f"gt1-{secret}",
            f"gt1-client-{proof}{server}",
        ]
        program = f"import gt; gt.connect('{address}'); print(gt.ones(2).sum().item())"
        for key in forged:
            done = run_python(program, GT_KEY=key)
            assert done.returncode != 0 and "ConnectionError" in done.stderr, (key, done)
        for key in (ada, bob):
            assert run_python(program, GT_KEY=key).stdout == "2.0\n"
