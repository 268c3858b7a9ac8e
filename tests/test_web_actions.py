"""What operators do by the web page: a real server, over HTTP."""

import json
import os
import subprocess
import sys
import urllib.request
from contextlib import contextmanager

import pytest
from processes import (
    cluster,
    embedded_only,
    one_engine_only,
    program,
    run_gt,
    start_program,
    write_key,
)
from web_pages import WebPage, acting_link_of_server, answer_to, page_of_server

pytestmark = [embedded_only, one_engine_only]


class Operator:
    """Acts by a page, with a token."""

    def __init__(self, page: WebPage, token: str):
        self.page, self.token = page, token

    def send(self, body: bytes, **changed: str | None) -> tuple[int, str]:
        """Return the status and the body of the answer; a header that is None is left out."""
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Origin": self.page.base,
            "Content-Type": "application/json",
            **{name.replace("_", "-"): value for name, value in changed.items()},
        }
        given = {name: value for name, value in headers.items() if value is not None}
        url = f"{self.page.base}/actions"
        return answer_to(urllib.request.Request(url, data=body, headers=given, method="POST"))

    def act(self, action: str, **fields: object) -> str:
        """Return what was done."""
        status, body = self.send(json.dumps({"action": action, **fields}).encode())
        assert status == 200, (status, body)
        return str(json.loads(body)["done"])

    def refused(self, action: str, **fields: object) -> str:
        """Return why something was not done."""
        status, body = self.send(json.dumps({"action": action, **fields}).encode())
        assert status == 409, (status, body)
        return str(json.loads(body)["error"])

    def wait_until_session(self, what: str, accepts) -> dict:
        """Return the only session, once it is accepted."""

        def is_it(_: str, data: dict) -> bool:
            sessions = data.get("sessions", [])
            return len(sessions) == 1 and accepts(sessions[0])

        (session,) = self.page.wait_for(what, is_it)["sessions"]
        return session


@contextmanager
def acting_cluster(workers: int, *options: str, worker_options=()):
    """Yield the address of a server with an acting page, an operator by it, and the processes."""
    options = ("--web", "0", "--web-actions", *options)
    with cluster(workers, *options, worker_options=worker_options) as (address, processes):
        page = page_of_server(processes[0])
        token = acting_link_of_server(processes[0]).removeprefix(f"{page.base}/#act=")
        yield address, Operator(page, token), processes


@pytest.fixture
def keys(tmp_path):
    """Return the options with the cluster's key, and a function for the keys of users."""
    path = tmp_path / "cluster.key"
    write_key(path, run_gt("key").stdout)

    def of_user(user: str) -> str:
        return run_gt("key", "--user", user, "--of-file", str(path)).stdout.strip()

    return ("--key-file", str(path)), of_user


def test_operators_pause_resume_weigh_and_end_and_the_log_says_who(tmp_path, keys):
    options, of_user = keys
    log = tmp_path / "server.log"
    with acting_cluster(1, *options, "--log-file", str(log), worker_options=options) as (
        address,
        operator,
        _,
    ):
        client = start_program("sessions/counter", address, GT_KEY=of_user("ada"))
        try:
            assert client.stdout.readline() == "0\n"
            shown = operator.wait_until_session("a session", lambda of: of["rate"] > 0)
            session = {"session": shown["name"], "user": "ada"}
            assert operator.act("pause", **session) == f"paused {shown['name']}"
            paused = operator.wait_until_session(
                "it is paused", lambda of: of["waits_for"].endswith("it is paused")
            )
            assert paused["name"] == shown["name"]
            assert operator.act("pause", **session) == "it is paused already"
            assert operator.act("resume", **session) == f"resumed {shown['name']}"
            operator.wait_until_session(
                "it continues", lambda of: of["instructions"] > paused["instructions"]
            )
            done = operator.act("weigh", user="ada", weight=3)
            assert done == "the weight of user 'ada' is 3 now"
            operator.wait_until_session("its weight", lambda of: of["weights"]["user"] == 3)
            assert "the policy's again" in operator.act("weigh", user="ada", weight=None)
            assert operator.act("pause", user="ada") == f"paused {shown['name']}"
            assert operator.act("resume", user="ada") == f"resumed {shown['name']}"
            error = operator.refused("weigh", user="adda", weight=3)
            assert error.endswith("hint: did you mean 'ada'?")
            error = operator.refused("end", session=shown["name"], user="eve")
            assert "of user 'eve'" in error
            assert operator.act("end", **session) == f"ended the session {shown['name']}"
            _, errors = client.communicate(timeout=20)
            assert "an operator has ended it" in errors
        finally:
            client.kill()
            client.wait()
    lines = [line for line in log.read_text().splitlines() if "| Operate " in line]
    assert all("operator" in line for line in lines), lines
    asked, answered = (
        [line for line in lines if f"| {kind} " in line] for kind in ("RECV", "SEND")
    )
    assert len(asked) == len(answered) == 10, lines
    assert all(", by its web page for 127.0.0.1' " in line for line in asked), asked
    assert "Pause {" in asked[0] and f'Ok("paused {shown["name"]}")' in answered[0], lines
    assert operator.token not in log.read_text()


def test_a_worker_is_drained_while_the_page_is_used():
    with acting_cluster(2) as (address, operator, processes), program(address):
        shown = operator.wait_until_session("a session", lambda of: of["rate"] > 0)
        assert operator.page.read("/metrics").count("gt_worker_queue{") == 2
        done = operator.act("drain", worker="w0", within=40)
        assert done.startswith("the worker 'w0' is drained, after "), done
        assert processes[1].wait(timeout=30) == 0
        assert "there is no worker 'w0'" in operator.refused("drain", worker="w0")
        operator.wait_until_session(
            "it continues on the other", lambda of: of["instructions"] > shown["instructions"]
        )


def test_others_do_not_act():
    with acting_cluster(0) as (_, operator, _):
        pause = b'{"action": "pause", "session": "#1"}'
        long = json.dumps({"action": "pause", "session": "a" * 10_000}).encode()
        watcher, stranger = f"Bearer {operator.page.token}", "Bearer " + "0" * 32
        for body, changed, status in [
            (pause, {"Authorization": watcher}, 403),
            (pause, {"Authorization": None}, 401),
            (pause, {"Authorization": stranger}, 401),
            (pause, {"Origin": None}, 403),
            (pause, {"Origin": "http://evil.example"}, 403),
            (pause, {"Host": "evil.example", "Origin": "http://evil.example"}, 403),
            (pause, {"Sec_Fetch_Site": "cross-site"}, 403),
            (pause, {"Content_Type": "text/plain"}, 415),
            (b"\xff\x00garbage", {}, 400),
            (b"[" * 4000, {}, 400),
            (b'{"action": "reboot"}', {}, 400),
            (long, {}, 413),
        ]:
            code, said = operator.send(body, **changed)
            assert code == status, (body[:60], changed, code, said)
            if status in (401, 403):
                assert "session" not in said and "gt" not in said.lower(), said
        # Those who may act get the server's answer.
        assert "there is no session '#1'" in operator.refused("pause", session="#1")
        listed = answer_to(operator.page.request("/actions"))
        assert listed == (200, '{"actions":[]}')


def test_a_page_with_a_users_key_acts_on_sessions_of_the_user_alone(keys):
    options, of_user = keys
    with cluster(1, *options, worker_options=options) as (address, _):
        clients = [
            start_program("sessions/counter", address, GT_KEY=of_user(user))
            for user in ("ada", "eve")
        ]
        command = [sys.executable, "-m", "gt", "web", "--listen", "0", "--web-actions", address]
        web = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, "GT_KEY": of_user("ada")}
        )
        try:
            assert [client.stdout.readline() for client in clients] == ["0\n", "0\n"]
            page = WebPage(web.stdout.readline().split()[-1])
            token = acting_link_of_server(web).removeprefix(f"{page.base}/#act=")
            operator = Operator(page, token)
            listed = answer_to(page.request("/actions", token))
            expected = {"actions": ["pause", "resume", "end", "weigh"], "user": "ada"}
            assert (listed[0], json.loads(listed[1])) == (200, expected)
            shown = page.wait_for("two sessions", lambda _, data: len(data["sessions"]) == 2)
            own, other = sorted(shown["sessions"], key=lambda of: of["user"])
            done = operator.act("pause", session=own["name"], user="ada")
            assert done == f"paused {own['name']}"
            assert "no session" in operator.refused("end", session=other["name"])
            assert "the key is of the user 'ada'" in operator.refused("drain", worker="w0")
            done = operator.act("weigh", session=own["name"], weight=3)
            assert done.endswith("among the sessions of its user is 3 now")
            assert "the key is of the user 'ada'" in operator.refused("weigh", user="ada", weight=3)
            done = operator.act("end", session=own["name"])
            assert done == f"ended the session {own['name']}"
            assert clients[1].poll() is None
        finally:
            for process in (web, *clients):
                process.kill()
                process.communicate()


def test_a_page_acts_only_if_it_is_asked_to_and_its_key_may(tmp_path, keys):
    options, _ = keys
    files = {}
    for role in ("watcher", "operator"):
        files[role] = tmp_path / f"{role}.key"
        write_key(files[role], run_gt("key", "--role", role, "--of-file", options[1]).stdout)
    with cluster(0, "--web", "0", *options) as (address, processes):
        page = page_of_server(processes[0])
        body = b'{"action": "pause", "session": "#1"}'
        assert Operator(page, page.token).send(body) == (405, "")

        def gt_web(role: str) -> tuple[str, ...]:
            return (
                "web",
                "--listen",
                "0",
                "--web-actions",
                "--key-file",
                str(files[role]),
                address,
            )

        done = run_gt(*gt_web("watcher"))
        assert done.returncode == 1 and "a key for an operator is needed" in done.stderr, done
        assert "token" not in done.stdout, done
    done = run_gt("server", "--web-actions")
    assert done.returncode == 2 and "need --web" in done.stderr, done
    done = run_gt("server", "--web", "0", "--web-operator-token-file", "x")
    assert done.returncode == 2 and "needs --web-actions" in done.stderr, done
    with program() as process:
        done = run_gt("web", "--listen", "0", "--web-actions", "--pid", str(process.pid))
        assert done.returncode == 1 and "runs its own workers" in done.stderr, done


def test_gt_web_acts_with_an_operators_key_and_a_token_of_a_file(tmp_path, keys):
    options, _ = keys
    key, token = tmp_path / "operator.key", tmp_path / "token"
    write_key(key, run_gt("key", "--role", "operator", "--of-file", options[1]).stdout)
    write_key(token, "a-token-of-some-length\n")
    with cluster(0, *options) as (address, _):
        command = ["web", "--listen", "0", "--web-actions", "--key-file", str(key), address]
        files = ["--web-operator-token-file", str(token)]
        web = subprocess.Popen(
            [sys.executable, "-m", "gt", *command, *files], stdout=subprocess.PIPE, text=True
        )
        try:
            page = WebPage(web.stdout.readline().split()[-1])
            operator = Operator(page, token.read_text().strip())
            assert "there is no session '#1'" in operator.refused("end", session="#1")
        finally:
            web.kill()
            assert "act" not in web.communicate()[0], "the token is in its file alone"
    # The same token twice would let every reader act.
    same = ["--web-token-file", str(token), "--web-operator-token-file", str(token)]
    done = run_gt("server", "-p", "0", "--web", "0", "--web-actions", *same)
    assert done.returncode == 1 and "has the token of the page itself" in done.stderr, done
