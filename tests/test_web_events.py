"""What the page shows of the past: losses, recoveries, moves, errors and the last hour."""

import json

from processes import (
    cluster,
    embedded_only,
    one_engine_only,
    run_gt,
    start_program,
    unsharded_only,
)
from training import SHARDED, Training
from web_pages import page_of_server

pytestmark = [embedded_only, unsharded_only, one_engine_only]


def kinds(data: dict) -> list[str]:
    """Return what happened, in its order."""
    return [event["kind"] for event in data.get("events", [])]


def test_the_loss_of_a_worker_and_the_recovery_of_its_sessions_are_shown():
    with cluster(2, "--web", "0") as (address, processes):
        page = page_of_server(processes[0])
        training = Training(SHARDED, address, 2000)
        try:
            training.wait_for(100)
            victim = processes.pop(1)
            victim.kill()
            victim.communicate()
            shown = page.wait_for("a recovery", lambda _, data: "recovered" in kinds(data))
        finally:
            training.kill()
        events = shown["events"]
        numbers = [event["number"] for event in events]
        assert numbers == list(range(1, len(events) + 1))
        times = [event["seconds"] for event in events]
        assert times == sorted(times) and times[-1] <= shown["seconds"]
        by_kind = {event["kind"]: event for event in events}
        joined = [event["worker"] for event in events if event["kind"] == "worker_joined"]
        assert joined == ["w0", "w1"], events
        assert by_kind["worker_lost"]["worker"] == "w0", events
        (session,) = shown["sessions"]
        for kind in ("recovery_begun", "recovered", "slots_moved"):
            event = by_kind[kind]
            assert (event["session"], event["name"]) == (session["number"], session["name"])
        assert "'w0'" in by_kind["recovery_begun"]["reason"], events
        assert by_kind["recovered"]["took_seconds"] >= 0
        moved = by_kind["slots_moved"]
        assert (moved["from"], moved["to"], moved["reason"]) == ("w0", "w1", "loss"), moved
        # Scripts read the same.
        done = run_gt("top", "--once", "--json", "--host", "localhost", "-p", address.split(":")[1])
        assert done.returncode == 0, done
        assert kinds(json.loads(done.stdout))[: len(events)] == kinds(shown)


def test_a_drained_worker_moves_its_sessions_with_their_bytes():
    with cluster(2, "--web", "0") as (address, processes):
        page = page_of_server(processes[0])
        training = Training(SHARDED, address, 100_000)
        try:
            training.wait_for(100)
            done = run_gt("worker", "drain", "w0", "--server", address)
            assert done.returncode == 0, done
            shown = page.wait_for("a drained worker", lambda _, data: "worker_left" in kinds(data))
        finally:
            training.kill()
        processes.pop(1).communicate(timeout=30)
        happened = [kind for kind in kinds(shown) if kind != "worker_joined"]
        assert happened == ["worker_drains", "slots_moved", "worker_left"], shown["events"]
        _, moved, left = [event for event in shown["events"] if event["kind"] in set(happened)]
        assert (moved["from"], moved["to"], moved["reason"]) == ("w0", "w1", "drain"), moved
        assert moved["bytes"] > 0 and moved["slots"] >= 1, moved
        assert (left["worker"], left["reason"]) == ("w0", "drained"), left


def test_the_last_error_of_a_session_names_its_line():
    with cluster(1, "--web", "0") as (address, processes):
        page = page_of_server(processes[0])
        client = start_program("web/fails_once", address)
        try:
            assert client.stdout.readline() == "failed\n"

            def has_line(_: str, data: dict) -> bool:
                sessions = data.get("sessions", [])
                return any(of["last_error"] and of["last_error"]["line"] for of in sessions)

            (session,) = page.wait_for("an error with its line", has_line)["sessions"]
            error = session["last_error"]
            assert error["line"].startswith("fails_once.py:"), error
            assert "out of range" in error["reason"] and error["worker"] == "w0", error
            assert error["operation"] and error["seconds"] >= 0, error
            # The program itself reads the same.
            client.stdin.write("status\n")
            client.stdin.flush()
            own = json.loads(client.stdout.readline())
            assert {**own, "seconds": 0} == {**error, "seconds": 0}
        finally:
            client.kill()
            client.communicate()
        # Its program did not close it.
        shown = page.wait_for("its end", lambda _, data: "session_ended" in kinds(data))
        assert shown["sessions"] == [] and shown["events"][-1]["name"] == session["name"], shown
