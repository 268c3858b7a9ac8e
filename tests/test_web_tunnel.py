"""Connections to a server over its page's port."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import gt
import numpy as np
import pytest
from gt.session import web_tunnel
from gt.session.tunnel import close_tunnel, open_tunnel
from gt.session.web_address import WebAddress
from processes import embedded_only, linux_only, one_engine_only, run_gt, unsharded_only
from proxy import Proxy
from ssh_labs import await_loss_of_server, compute
from sshd import processes_with
from training import TRAINING, Training
from tunnels import Answers, carriers_with, lab, needs_websockets

pytestmark = [embedded_only, one_engine_only, unsharded_only, linux_only, needs_websockets]

_HTML = b"HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n"


@pytest.fixture(scope="module")
def near():
    """A server with two workers and a page, which is also served under a name."""
    with lab(2, "--web-name", "localhost") as opened:
        yield opened


@pytest.fixture
def user(near):
    """A program that computes through a tunnel."""
    process = near.user(near.page.base)
    yield process
    process.kill()
    process.communicate()


def test_training_has_the_same_bits(near, monkeypatch):
    monkeypatch.setenv("GT_KEY", near.key.read_text())
    direct = Training(TRAINING, near.address, 30)
    through = Training(TRAINING, near.page.base, 30)
    assert direct.end() == through.end()
    assert direct.errors == through.errors == []


def test_large_tensors_arrive_whole(near):
    with gt.Session(near.page.base, key_file=near.key) as session:
        data = np.random.default_rng(0).integers(0, 1 << 62, 1 << 20)
        assert np.array_equal(gt.from_numpy(data).numpy(), data)
        assert (gt.ones(3) + 1).tolist() == [2, 2, 2]
        assert not session.closed
    local = open_tunnel(near.page.base)
    assert local == open_tunnel(near.page.base), "one tunnel for all sessions"
    folder = Path(local.removeprefix("file://")).parent
    assert folder.stat().st_mode & 0o777 == 0o700
    close_tunnel(near.page.base)
    assert not folder.exists() and carriers_with(str(folder)) == []


def test_tools_take_the_address(near):
    done = run_gt("top", "--once", near.page.base, "--key-file", str(near.key))
    assert (done.returncode, done.stderr) == (0, "") and "w1" in done.stdout
    done = run_gt("top", "--once", "http://localhost:1")
    assert done.returncode == 1 and "nothing answers there" in done.stderr, done
    assert len(done.stderr.splitlines()) == 2, done.stderr


def test_a_session_ends_with_its_program(near, user):
    assert compute(user) == 3
    shown = near.page.wait_for("a session", lambda _, data: data.get("sessions"))
    (session,) = shown["sessions"]
    user.communicate()
    near.page.wait_for("its end", lambda _, data: data.get("sessions") == [])
    assert user.returncode == 0 and session["program"] == "computes_at_lines.py"
    near.await_nothing()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_of_a_program_that_was_killed(near, user, how):
    assert compute(user) == 3 and near.carriers()
    user.send_signal(how)
    user.communicate()
    near.await_nothing()


def test_a_tunnel_that_is_killed_is_opened_again(near, user):
    assert compute(user) == 3
    for count in (2, 3):
        (carrier,) = near.carriers()
        os.kill(carrier, signal.SIGKILL)
        assert compute(user) == 3 * count


def test_a_lost_connection_is_restored(near):
    proxy = Proxy(int(near.page.base.rsplit(":", 1)[1]))
    process = near.user(f"http://localhost:{proxy.port}")
    try:
        assert compute(process) == 3
        for count in (2, 3):
            proxy.cut()
            assert compute(process) == 3 * count
    finally:
        process.kill()
        process.communicate()
        proxy.close()


def test_a_forked_child_opens_its_own(near):
    first = open_tunnel(near.page.base)
    child = os.fork()
    if child == 0:
        is_other = open_tunnel(near.page.base) != first
        close_tunnel(near.page.base)
        os._exit(0 if is_other else 1)
    assert os.waitpid(child, 0)[1] == 0
    with gt.Session(first, key_file=near.key):
        assert (gt.ones(3) + 1).tolist() == [2, 2, 2]


def test_another_key_is_refused_as_at_the_servers_own_address(near, tmp_path):
    other = tmp_path / "other"
    other.touch(mode=0o600)
    other.write_text(run_gt("key").stdout)
    with (
        pytest.raises(ConnectionError, match="refuses the key"),
        gt.Session(near.page.base, key_file=other),
    ):
        raise AssertionError("a stranger has a session")


def test_a_server_without_keys_takes_the_pages_token():
    with lab(1, has_keys=False) as keyless:
        with pytest.raises(ConnectionError, match="asks for its token.*has no keys"):
            gt.Session(keyless.page.base, insecure=True)
        with pytest.raises(ConnectionError, match="has another token"):
            gt.Session(f"{keyless.page.base}/#token={'0' * 32}", insecure=True)
        process = keyless.user(keyless.page.link, "insecure")
        try:
            assert compute(process) == 3
            lines = processes_with(keyless.page.token)
            assert [line for line in lines if "computes_at_lines" not in line] == []
        finally:
            process.kill()
            process.communicate()


def test_a_server_that_is_gone_is_not_waited_for():
    with lab(1) as gone:
        process = gone.user(gone.page.base, stderr=subprocess.PIPE)
        await_loss_of_server(process, gone.server)
        gone.await_nothing()
        with pytest.raises(ConnectionError, match="nothing answers there"):
            gt.Session(gone.page.base, key_file=gone.key)


def test_a_page_that_watches_leads_to_no_server(near):
    command = [sys.executable, "-m", "gt", "web", "--listen", "0", "--key-file", str(near.key)]
    command.append(near.address)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as web:
        try:
            link = web.stdout.readline().split()[-1]
            with pytest.raises(ConnectionError, match="leads to no server"):
                gt.Session(link, key_file=near.key)
        finally:
            web.kill()


@pytest.mark.parametrize(
    "answer, words",
    [
        (_HTML % b"200 OK", "status 200"),
        (_HTML % b"400 Bad Request", "does not forward WebSockets"),
        (_HTML % b"403 Forbidden", "not served under this name"),
        (_HTML % b"404 Not Found", "leads to no server"),
        (_HTML % b"426 Upgrade Required", "does not forward WebSockets"),
        (_HTML % b"502 Bad Gateway", "no server answers behind it"),
        (b"HTTP/1.1 302 Found\r\nLocation: https://sign.in/\r\n\r\n", "status 302): https://sign."),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "no page of `gt server --web`"),
        (b"\xff\0\0\0\0\0\0\0\1\x7f\3\1CURVE", "no page of `gt server --web`"),
        (b"", "no page of `gt server --web`"),
    ],
)
def test_what_else_answers_is_told_in_one_line(near, answer, words):
    with Answers(answer) as stranger:
        address = f"http://127.0.0.1:{stranger.port}"
        with pytest.raises(ConnectionError) as caught:
            gt.Session(address)
        what, hint = str(caught.value).split("\n")
        assert what.startswith(f"{address}: ") and words in what, what
        assert hint.startswith("  hint: ")


#: Answers the first look when it is asked for the second one.
_SLOW = """
import json, sys
numbers = [sys.stdin.readline() for _ in range(3)][1:]
for at, number in enumerate(numbers):
    print(json.dumps([int(number), {"kind": "answer", "text": str(at + 1)}]), flush=True)
sys.stdin.readline()
"""


def test_the_answer_to_an_interrupted_look_is_not_that_to_the_next(tmp_path, monkeypatch):
    (script := tmp_path / "slow.py").write_text(_SLOW)
    monkeypatch.setattr(web_tunnel, "_SCRIPT", script)
    to = WebAddress.parse("http://127.0.0.1:1")
    with (tmp_path / "listener").open("w") as listener:
        carrier = web_tunnel.CarrierProcess(tmp_path, listener, tmp_path / "s", to)

    def interrupt():
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("select.poll", interrupt)
        carrier.look()
    assert carrier.look() == {"kind": "answer", "text": "2"}
    carrier.end()
