"""Device time over windows: what sessions, users and teams are entitled to, and what they use."""

import json
import signal
import time

import gt
import pytest
from processes import cluster, embedded_only, one_engine_only, program, run_gt, write_key

pytestmark = [embedded_only, one_engine_only]

POLICY = "users: {ada: {share: 1}, eve: {share: 3}}\nteams: {vision: {share: 2}}\n"
FIELDS = ("entitled_seconds", "used_seconds")


@pytest.fixture
def shared(tmp_path):
    """Yield a server's address, its worker, the path of its key, and a maker of users' keys."""
    key, policy = tmp_path / "key", tmp_path / "policy.yaml"
    write_key(key, run_gt("key").stdout)
    policy.write_text(POLICY)

    def of_user(user: str, team: str = "") -> str:
        return run_gt("key", "--user", user, "--team", team, "--of-file", str(key)).stdout.strip()

    options = ("--key-file", str(key))
    given = (1, *options, "--policy", str(policy))
    with cluster(*given, worker_options=options) as (address, (_, worker)):
        yield address, worker, str(key), of_user


def shown(address: str, key: str) -> dict:
    """Return the status of a server."""
    port = address.split(":")[1]
    report = run_gt("top", "--once", "--json", "--port", port, "--key-file", key)
    return json.loads(report.stdout)


def by_user(status: dict) -> dict[str, dict]:
    """Return the sessions of a status by user."""
    return {session["user"]: session for session in status["sessions"]}


def when_both_wait(address: str, key: str) -> dict:
    """Return a status in which each of two sessions has commands in flight."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        status = shown(address, key)
        if len(status["sessions"]) == 2 and all(each["open"] for each in status["sessions"]):
            return status
    pytest.fail(f"the sessions have no work: {status['sessions']}")


def test_active_sessions_are_entitled_by_their_weights(shared):
    """While a worker stands still, its time goes to those with commands in flight, 1 : 3."""
    address, worker, key, of_user = shared
    with (
        program(address, GT_KEY=of_user("ada")),
        program(address, GT_KEY=of_user("eve")),
    ):
        worker.send_signal(signal.SIGSTOP)
        try:
            before = when_both_wait(address, key)
            after = shown(address, key)
        finally:
            worker.send_signal(signal.SIGCONT)
    seconds = after["seconds"] - before["seconds"]
    assert seconds > 0
    for user, part in (("ada", 0.25), ("eve", 0.75)):
        one, other = by_user(before)[user], by_user(after)[user]
        entitled = [each["windows"]["10min"]["entitled_seconds"] for each in (one, other)]
        assert entitled[1] - entitled[0] == pytest.approx(part * seconds, abs=1e-6), user
        assert other["windows"]["10min"]["used_seconds"] == one["windows"]["10min"]["used_seconds"]


def test_windows_are_sums_of_what_was_used(shared):
    """Of sessions, users and teams, those that have ended included."""
    address, _, key, of_user = shared
    keys = [of_user("ada", "vision"), of_user("eve", "vision"), of_user("eve")]
    with program(address, GT_KEY=keys[0]):
        with program(address, GT_KEY=keys[1]), program(address, GT_KEY=keys[2]):
            first = shown(address, key)
        status = shown(address, key)
    last = shown(address, key)
    assert [len(each["sessions"]) for each in (first, status, last)] == [3, 1, 0]
    for report in (first, status, last):
        # No window has seen all: the server is younger than the longest one.
        for each in [*report["sessions"], *report["users"], *report["teams"]]:
            windows = [each["windows"][name] for name in ("10s", "1min", "10min")]
            assert windows[2]["used_seconds"] == pytest.approx(each["device_seconds"], abs=1e-6)
            assert each["device_seconds"] > 0
            for field in FIELDS:
                short, middle, long = (window[field] for window in windows)
                assert 0 <= short <= middle <= long
        for name in ("10s", "1min", "10min"):
            for field in FIELDS:
                totals = [
                    sum(each["windows"][name][field] for each in report[of])
                    for of in ("users", "teams")
                ]
                assert totals[0] == pytest.approx(totals[1], abs=1e-6)
        entitled = sum(team["windows"]["10min"]["entitled_seconds"] for team in report["teams"])
        assert entitled <= report["seconds"]
    assert {(user["user"], user["team"]) for user in last["users"]} == {
        ("ada", "vision"),
        ("eve", "vision"),
        ("eve", ""),
    }
    assert {team["team"]: team["weight"] for team in last["teams"]} == {"": 1, "vision": 2}
    of_eve = next(user for user in status["users"] if (user["user"], user["team"]) == ("eve", ""))
    assert of_eve["sessions"] == 0, "its session has ended, and counts"


def test_a_session_alone_is_entitled_to_the_time_with_work():
    x = gt.ones(200, 200)
    (x @ x).sum().item()
    (session,) = (each for each in gt.status().sessions if each["instructions"])
    window = session["windows"]["10min"]
    assert 0 < window["used_seconds"] and 0 < window["entitled_seconds"]
    assert window["entitled_seconds"] <= gt.status().seconds * len(gt.status().workers)
    text = repr(gt.status())
    assert "in 10 s" in text and "in 1 min" in text


def test_why_a_session_waits_says_what_it_was_due(shared):
    address, _, key, of_user = shared
    with program(address, GT_KEY=of_user("ada")), program(address, GT_KEY=of_user("eve")):
        port = ("--port", address.split(":")[1], "--key-file", key)
        done = run_gt("explain-wait", "ada", *port)
        listed = run_gt("top", "--once", *port)
    assert "it has used" in done.stdout and "s in 10min." in done.stdout, done
    assert listed.stdout.count(" s in 10min, ") >= 4, listed
