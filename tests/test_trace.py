"""`gt trace`: traces of a program and of a server."""

import re
import subprocess
import sys
import time

from processes import cluster, embedded_only, one_engine_only, program, run_gt

pytestmark = [embedded_only, one_engine_only]

LINE = re.compile(
    r"\d+\.\d{3}s \| #\d{4,} \| [A-Z_]+ *\| (CLIENT|WORKER) \S+ *\| \w+ *\| *\d+B \| ?"
    r"((\w+=\S+)( \w+=\S+)*)?$"
)


def test_a_trace_has_the_format_of_the_log(trace_file):
    lines = trace_file.read_text().splitlines()
    assert len(lines) > 20
    for line in lines:
        assert LINE.fullmatch(line), line
    numbers = [int(line.split(" | ")[1][1:]) for line in lines]
    assert numbers == list(range(1, len(lines) + 1))
    times = [float(line.split("s | ")[0]) for line in lines]
    assert times == sorted(times)


def test_a_trace_has_every_event_of_an_instruction(trace_file):
    events = {line.split(" | ")[2].strip() for line in trace_file.read_text().splitlines()}
    assert {"ISSUE", "RECV", "PLAN", "WORKER_SEND", "WORKER_RECV", "SEND"} <= events


def test_all_times_are_on_one_clock(trace_file):
    spans = re.findall(r"begin=(\S+) end=(\S+)", trace_file.read_text())
    assert spans
    elapsed = [float(line.split("s | ")[0]) for line in trace_file.read_text().splitlines()]
    for begin, end in spans:
        assert elapsed[0] - 1 < float(begin) <= float(end) <= elapsed[-1] + 0.001


def test_the_clocks_of_processes_agree(tmp_path):
    with cluster(1) as (address, _):
        port = address.split(":")[1]
        with program(address):
            done = run_gt("trace", "-s", "1", "--port", port, "--dir", str(tmp_path), "-o", "t.log")
            assert (done.returncode, done.stderr) == (0, ""), done
    text = (tmp_path / "t.log").read_text()
    read = dict(re.findall(r"WorkerRead .* tensor=(\d+) .*end=(\S+)", text))
    sent = re.findall(r"(\S+)s \| #\d+ \| SEND .* tensor=(\d+) ", text)
    # The dispatcher forwards a value soon after the worker has read it.
    late = sorted(float(at) - float(read[tensor]) for at, tensor in sent if tensor in read)
    assert len(late) > 5 and late[0] > -0.02 and late[len(late) // 2] < 0.5, late


def test_a_trace_that_cannot_be_written_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with program() as process:
        done = run_gt(
            "trace", "-s", "1", "--pid", str(process.pid), "--dir", str(tmp_path / "file")
        )
    assert done.returncode == 1 and str(tmp_path / "file") in done.stderr, done


def test_a_trace_ends_at_its_number_of_events(tmp_path):
    with program() as process:
        command = ["trace", "-s", "30", "-n", "50", "--pid", str(process.pid)]
        done = run_gt(*command, "--dir", str(tmp_path), "-o", "t.log")
    assert done.returncode == 0 and "50 events" in done.stdout, done
    assert len((tmp_path / "t.log").read_text().splitlines()) == 50


def test_instructions_on_workers_have_their_signal(tmp_path):
    with program(name="watching/signal_loop") as process:
        done = run_gt(
            "trace", "-s", "0.5", "--pid", str(process.pid), "--dir", str(tmp_path), "-o", "t.log"
        )
    assert (done.returncode, done.stderr) == (0, ""), done
    lines = [line for line in (tmp_path / "t.log").read_text().splitlines() if "op=exp" in line]
    ran = [line for line in lines if "WORKER_RECV" in line]
    assert ran and all("signal=part_one" in line for line in ran)


def test_a_trace_of_a_program_that_exits_is_kept_and_reported(tmp_path):
    with program() as process:
        command = ["trace", "-s", "60", "--pid", str(process.pid), "--dir", str(tmp_path)]
        tracer = subprocess.Popen(
            [sys.executable, "-m", "gt", *command, "-o", "t.log"],
            stderr=subprocess.PIPE,
            text=True,
        )
        time.sleep(1.5)
    _, errors = tracer.communicate(timeout=30)
    assert tracer.returncode == 0 and "ended early" in errors, errors
    assert "| WORKER_RECV" in (tmp_path / "t.log").read_text()
