"""Recordings by the web page: what a real cluster does, as a timeline."""

import json
import os
import subprocess
import sys

import gt
from processes import cluster, embedded_only, one_engine_only, program, run_gt, write_key
from recordings import fetch, start, wait_for
from web_pages import WebPage, page_of_server

pytestmark = [embedded_only, one_engine_only]


def test_a_recording_has_what_a_trace_has(tmp_path):
    with cluster(2, "--web", "0") as (address, processes), program(address):
        page = page_of_server(processes[0])
        status, answer = start(page, 1, session=0)
        assert status == 202, answer
        status, refused = start(page, 1)
        assert status == 409 and "a recording runs already" in refused["error"], refused
        said = wait_for(page, answer["number"])
        assert (said["state"], said["ended"]) == ("ready", None), said
        recording = fetch(page, answer["number"])
        port = address.split(":")[1]
        done = run_gt("trace", "-s", "1", "--port", port, "--dir", str(tmp_path), "-o", "t.log")
        assert (done.returncode, done.stderr) == (0, ""), done
        json_text = page.read(f"/recordings/{answer['number']}.json")

    header, spans, _ = recording
    assert header["spans"] == said["events"] > 50 and header["session"] == 0
    assert header["title"] == f"server {address}" and header["dropped"] == said["dropped"]
    parts = [row["part"] for row in header["rows"]]
    assert parts[:2] == ["client", "dispatcher"] and set(parts[2:]) == {"worker"}
    # The same program, some moments later: its rows, and what it does on them.
    timeline = gt.debug.Timeline(tmp_path / "t.log")
    assert timeline.lanes == len(parts)
    timeline.save(tmp_path / "t.json")
    trace = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    rows = {(of["pid"], of["args"]["name"]) for of in trace if of["name"] == "thread_name"}
    process = {"client": 1, "dispatcher": 2, "worker": 3}
    assert rows == {(process[row["part"]], row["name"]) for row in header["rows"]}
    ran = {of["name"] for of in trace if of["pid"] == 3 and of["ph"] == "X"}
    # What a loop does once a step; compilations and collective frees may come in either second.
    assert {"matmul", "relu", "sum"} & ran == {"matmul", "relu", "sum"} & recording.names("worker")
    assert recording.names("worker") & ran
    assert all(begin <= end for begin, end in zip(spans["begin"], spans["end"], strict=True))
    assert min(spans["begin"]) == header["begin"] and max(spans["end"]) == header["end"]

    perfetto = json.loads(json_text)["traceEvents"]
    slices = [of for of in perfetto if of["ph"] in "Xib"]
    assert len(slices) == header["spans"]
    assert {of["args"]["session"] for of in slices if of["args"]["session"]} == {
        kind["session_name"] for kind in header["kinds"] if kind["session_name"]
    }


def test_a_server_without_work_and_one_that_ends_are_reported():
    with cluster(1, "--web", "0") as (_, processes):
        page = page_of_server(processes[0])
        _, answer = start(page, 1)
        said = wait_for(page, answer["number"])
        assert said["state"] == "failed" and "there were no events" in said["error"], said
    with cluster(1) as (address, processes):
        command = [sys.executable, "-m", "gt", "web", "--listen", "0", address]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as web:
            try:
                page = WebPage(web.stdout.readline().split()[-1])
                _, answer = start(page, 60)
                processes[0].kill()
                said = wait_for(page, answer["number"])
                assert said["state"] == "failed" and address in said["error"], said
            finally:
                web.kill()


def test_a_page_with_a_users_key_records_that_users_sessions(tmp_path):
    key = tmp_path / "cluster.key"
    write_key(key, run_gt("key").stdout)
    ada, bob = (
        run_gt("key", "--user", user, "--of-file", str(key)).stdout.strip()
        for user in ("ada", "bob")
    )
    options = ("--key-file", str(key))
    command = [sys.executable, "-m", "gt", "web", "--listen", "0"]
    with (
        cluster(1, *options, worker_options=options) as (address, _),
        program(address, GT_KEY=ada),
        program(address, GT_KEY=bob),
        subprocess.Popen(
            [*command, address],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "GT_KEY": ada},
        ) as web,
    ):
        try:
            page = WebPage(web.stdout.readline().split()[-1])
            _, answer = start(page, 1)
            said = wait_for(page, answer["number"])
            assert said["state"] == "ready", said
            header = fetch(page, answer["number"]).header
            names = {kind["session_name"] for kind in header["kinds"]}
            assert len(names) == 1 and "ada@" in names.pop(), header
            assert "bob" not in json.dumps(header)
            assert [row["part"] for row in header["rows"]] == ["client", "dispatcher", "worker"]
        finally:
            web.kill()
