"""The details of one session on the web page: its stream, its tensors by variable, its plan."""

import json
import time
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from processes import (
    cluster,
    embedded_only,
    line_in_program,
    one_engine_only,
    program,
    start_program,
)
from web_pages import (
    LIMIT,
    WebPage,
    acting_link_of_server,
    answer_to,
    gt_web,
    page_of_server,
)

PROGRAM = "web/trains_sharded"


def ask(page: WebPage, session: int, what: str = "") -> dict[str, Any]:
    """Return the details of a session."""
    return json.loads(page.read(f"/sessions/{session}{what}"))


def details(page: WebPage, accepts: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """Return the details of the first session that are accepted; asks as a page does."""
    until = time.monotonic() + LIMIT
    while True:
        found = ask(page, 1)
        if accepts(found):
            return found
        assert time.monotonic() < until, found
        time.sleep(0.2)


def number_of(text: str) -> str:
    """Return the line of the program that has some text, as it is shown: `trains_sharded.py:7`."""
    return line_in_program(PROGRAM, text).rsplit("/", 1)[1]


@pytest.fixture(scope="module")
def shown():
    """The page of a server on which a program trains on two workers."""
    with cluster(2, "--web", "0") as (address, processes), program(address, name=PROGRAM):
        yield page_of_server(processes[0])


@embedded_only
@one_engine_only
def test_the_stream_is_counted_by_operation_and_line(shown):
    forward = number_of("loss = (model(x)")

    def is_known(found: dict[str, Any]) -> bool:
        return any(of["line"] == forward and of["signal"] == "rows" for of in found["stream"])

    found = details(shown, is_known)
    assert any((of["operation"], of["line"]) == ("matmul", forward) for of in found["stream"])
    assert all(0 <= of["hot"] <= of["count"] for of in found["stream"])
    assert sum(of["hot"] for of in found["stream"]) > 0
    assert any(of["line"] == number_of("optimizer.step()") for of in found["stream"])
    (path, *_) = found["hot_paths"]
    assert path["instructions"] > path["steps"] >= 16 and forward in path["lines"], path
    later = details(shown, lambda now: now["hot_paths"][0]["instructions"] > path["instructions"])
    assert later["since"] == found["since"]


@embedded_only
@one_engine_only
def test_the_largest_tensors_have_their_variables_and_lines(shown):
    found = details(shown, lambda found: found["held"])["held"]
    largest, *_ = found["largest"]
    assert (largest["variable"], largest["shape"]) == ("cache['batches'][0]", [300, 300])
    assert (largest["dtype"], largest["bytes"]) == ("float32", 360000)
    assert largest["line"] == number_of("cache =")
    shapes = {of["variable"]: of["shape"] for of in found["largest"]}
    assert shapes["model.weight"] == [8, 16]
    assert shapes["optimizer.state[model.weight]['exp_avg']"] == [8, 16]
    assert (found["others"], found["other_bytes"]) == (0, 0)


@embedded_only
@one_engine_only
def test_a_step_is_explained_with_what_moves_between_workers(shown):
    before = ask(shown, 1, "?explain")["explained"]
    found = details(shown, lambda found: found["explained"] not in (None, before))["explained"]
    assert not found["cut"]
    slots = [(of["slot"], of["worker"]) for of in found["slots"]]
    assert slots == [(0, "w0"), (1, "w1")]
    step = next(of for of in found["steps"] if of["operation"] == "matmul")
    assert step["output"]["placement"].startswith("Shard(0)"), step
    assert step["output"]["slots"] == [0, 1]
    assert step["output"]["mesh"] == [2]
    assert step["output"]["shards"] == [{"axis": 0, "cuts": [0, 32, 64]}]
    moves = [move for step in found["steps"] for move in step["moves"]]
    assert moves and all(move["bytes"] > 0 and move["reason"] for move in moves)
    lines = {of["line"] for of in found["steps"]}
    assert {number_of("loss ="), number_of("optimizer.step()")} <= lines


@embedded_only
@one_engine_only
def test_sessions_of_a_program_with_its_own_workers_are_shown(shown):
    with program(name=PROGRAM) as process, gt_web("--pid", str(process.pid)) as (page, _):
        found = details(page, lambda found: found["held"] and found["stream"])
        variables = {of["variable"] for of in found["held"]["largest"]}
        assert {"model.weight", "model.bias", "cache['batches'][0]"} <= variables
        ask(page, 1, "?explain")
        assert details(page, lambda found: found["explained"])["explained"]["steps"]


@embedded_only
@one_engine_only
def test_who_may_not_see_the_details_is_told_why(shown):
    assert answer_to(shown.request("/sessions/99"))[0] == 404
    assert answer_to(shown.request("/sessions/x"))[0] == 400
    assert answer_to(urllib.request.Request(f"{shown.base}/sessions/1")) == (401, "")
    with cluster(1, "--web", "0", "--web-actions") as (address, processes):
        page = page_of_server(processes[0])
        token = acting_link_of_server(processes[0]).split("#act=")[1]
        with program(address, name=PROGRAM):
            status, text = answer_to(page.request("/sessions/1"))
            assert status == 403 and "operators" in text, text
            assert answer_to(page.request("/sessions/1", token))[0] == 200


@embedded_only
@one_engine_only
def test_variables_are_found_by_name_and_no_code_of_objects_is_run():
    with cluster(1, "--web", "0") as (address, processes):
        page = page_of_server(processes[0])
        with start_program("web/holds_objects", address) as process:
            assert process.stdout.readline() == "at work\n"
            found = details(page, lambda found: found["held"])["held"]
            # It is asked several times.
            later = details(page, lambda now: now["held"]["at"] > found["at"] + 4)["held"]
            end, errors = process.communicate("end\n", timeout=30)
        assert (process.returncode, errors) == (0, "")
        assert end == "2.0 []\n", "what the program's own code has noticed"
    for listed in (found, later):
        shapes = {of["variable"]: of["shape"] for of in listed["largest"]}
        assert shapes["trainer.model.0.weight"] == [2, 3]
        assert shapes["trainer.model.0.weight.grad"] == [2, 3]
        assert shapes["trainer.model.1.running_mean"] == [2]
        assert shapes["trainer.history[0]['loss']"] == [7]
        assert shapes["trainer.history[1][0]"] == [5]
        assert shapes["keyed[<Key>]"] == [13]
        assert shapes["registry['b']"] == [17]
        assert [11] not in shapes.values(), "properties are not read"


@embedded_only
@one_engine_only
def test_programs_that_are_asked_end_as_others_do():
    with cluster(1, "--web", "0") as (address, processes):
        page = page_of_server(processes[0])
        for number in range(1, 9):
            with start_program("web/ends_soon", address) as process:
                assert process.stdout.readline() == "at work\n"
                while process.poll() is None:
                    answer_to(page.request(f"/sessions/{number}"))
                    time.sleep(0.02)
                assert (process.returncode, process.stderr.read()) == (0, ""), number
