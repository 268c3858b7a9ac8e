"""The web page of a server, and of a program that is watched from outside."""

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request

from processes import cluster, embedded_only, one_engine_only, program, run_gt, start_program
from web_pages import WebPage, answer_to, gt_web, page_of_server

pytestmark = [embedded_only, one_engine_only]

#: What `gt.status()` and the page name alike, and what does not change between two questions.
OF_WORKERS = ("name", "number", "engine", "draining", "bytes", "tensors", "spilled_bytes")
OF_SESSIONS = ("name", "number", "program", "user", "login", "host", "bytes", "tensors", "share")


def picked(of: dict, names: tuple[str, ...]) -> dict:
    """Return the values that are compared."""
    return {name: of[name] for name in names}


def test_the_page_of_a_server_shows_what_the_status_says():
    with cluster(2, "--web", "0") as (address, processes):
        page = page_of_server(processes[0])
        client = start_program("web/answers_its_status", address, "<b>run</b>")
        try:
            assert client.stdout.readline() == "at work\n"
            client.stdin.write("status\n")
            client.stdin.flush()
            status = json.loads(client.stdout.readline())
            (session,) = status["sessions"]
            assert session["tensors"] >= 4, session
            memory = sum(worker["bytes"] for worker in status["workers"])

            def is_complete(name: str, data: dict) -> bool:
                # Workers report what they hold at intervals.
                workers = data.get("workers", [])
                return len(workers) == 2 and sum(of["bytes"] or 0 for of in workers) == memory

            shown = page.wait_for("the memory of the status", is_complete)
            assert shown["dispatcher"] == f"server {address}"
            by_name = [{of["name"]: of for of in each["workers"]} for each in (status, shown)]
            for name in ("w0", "w1"):
                told, seen = (picked(of[name], OF_WORKERS) for of in by_name)
                assert seen == told
            (seen,) = shown["sessions"]
            assert picked(seen, OF_SESSIONS) == picked(session, OF_SESSIONS)
            assert seen["name"].startswith("<b>run</b> "), "the text itself: the page escapes it"
            assert shown["reader"]["login"] == seen["login"]

            (seen,) = shown["publications"]
            assert [[seen[name] for name in ("name", "version", "bytes")]] == status["publications"]
            assert seen["description"] == "<b>run</b>"

            metrics = page.read("/metrics")
            assert "gt_workers 2.0\n" in metrics
            held = re.findall(r"gt_worker_memory_bytes\{worker=\"w\d\"\} (\S+)", metrics)
            assert sum(map(float, held)) == memory
            assert "gt_publications 1.0\n" in metrics
            assert '<script type="module" src="main.js">' in page.read("/")
        finally:
            client.kill()
            client.communicate()


def test_a_worker_that_was_killed_is_not_shown():
    with cluster(2, "--web", "0") as (_, processes):
        page = page_of_server(processes[0])
        page.wait_for("two workers", lambda _, data: len(data.get("workers", [])) == 2)
        processes[2].kill()
        shown = page.wait_for("one worker", lambda _, data: len(data.get("workers", [])) == 1)
        assert shown["workers"][0]["name"] == "w0"


def test_a_server_that_restarts_is_watched_again():
    with cluster(0) as (address, processes), gt_web(address) as (page, _):
        page.wait_for("a status", lambda name, _: name == "status")
        processes[0].kill()
        lost = page.wait_for("an error", lambda name, _: name == "lost")
        assert address in lost["error"], lost
        assert answer_to(page.request("/readyz")) == (503, "not ok\n")
        port = address.split(":")[1]
        command = [sys.executable, "-m", "gt.server", "-p", port]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
            try:
                page.wait_for("a status again", lambda name, _: name == "status")
                assert page.read("/readyz") == "ok\n"
            finally:
                server.kill()
                server.communicate()


def test_a_program_is_watched_from_outside():
    with program() as process, gt_web("--pid", str(process.pid)) as (page, web):
        shown = page.wait_for("a rate", lambda _, data: data["sessions"][0]["rate"] > 0)
        assert shown["dispatcher"].startswith(f"process {process.pid}")
        web.send_signal(signal.SIGINT)
        _, errors = web.communicate(timeout=30)
        assert (web.returncode, errors) == (130, "")


def test_strangers_and_other_hosts_are_refused():
    with cluster(0, "--web", "0") as (_, processes):
        page = page_of_server(processes[0])
        assert answer_to(urllib.request.Request(f"{page.base}/healthz")) == (200, "ok\n")
        for request, status in [
            (urllib.request.Request(f"{page.base}/metrics"), 401),
            (urllib.request.Request(page.base, headers={"Host": "evil.example:80"}), 403),
            (urllib.request.Request(page.base, method="POST"), 405),
            (page.request("/metrics", token="0" * 32), 401),
        ]:
            code, body = answer_to(request)
            assert code == status and "gt" not in body.lower(), (code, body)
            assert status == 403 or body == ""


def test_mistakes_are_one_line_and_a_hint(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = run_gt("server", "-p", "0", "--web", port)
        assert done.returncode == 1 and f"127.0.0.1:{port} is in use" in done.stderr, done
        assert done.stdout == "" and len(done.stderr.splitlines()) == 2, done
    for options, text in [
        (["--web", "0.0.0.0:0"], "0.0.0.0 is not a loopback address"),
        (["--web", "http://x"], "expected PORT or HOST:PORT"),
        (["--web", "0", "--web-name", "https://x"], "expected that of a host"),
        (["--web", "0", "--web-token-file", str(tmp_path / "none")], "token file"),
    ]:
        done = run_gt("server", "-p", "0", *options)
        assert done.returncode == 1 and text in done.stderr, done
        assert "Traceback" not in done.stderr, done
    done = run_gt("server", "--web-name", "gt.example.com")
    assert done.returncode == 2 and "need --web" in done.stderr, done
    done = run_gt("web", "--listen", "0", "localhost:1")
    assert done.returncode == 1 and "nothing answers at localhost:1" in done.stderr, done


def test_a_token_file_replaces_the_token_in_the_link(tmp_path):
    file = tmp_path / "token"
    file.write_text("a-token-of-some-length\n")
    file.chmod(0o600)
    with cluster(0, "--web", "0", "--web-token-file", str(file)) as (_, processes):
        line = next(line for line in processes[0].stdout if "a browser:" in line)
        assert "token" not in line, line
        page = WebPage(f"{line.split()[-1].rstrip('/')}/#token={'0' * 32}")
        status, metrics = answer_to(page.request("/metrics", "a-token-of-some-length"))
        assert status == 200 and "gt_workers 0.0" in metrics
