"""`gt record` and `gt replay`: a session's stream in a file, run again elsewhere."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from processes import (
    cluster,
    embedded_only,
    line_in_program,
    linux_only,
    one_engine_only,
    output_of,
    program_command,
    run_gt,
    unsharded_only,
)

pytestmark = [embedded_only, one_engine_only, unsharded_only]

PROGRAM = "recording/training"

#: Where replays find engines of tests.
SUPPORT = {"PYTHONPATH": f"{Path(__file__).parent / 'support'}:{os.environ.get('PYTHONPATH', '')}"}


def record(path, *arguments: object, options=(), **environment: str) -> str:
    """Record the program; return its output."""
    command = program_command(PROGRAM, *arguments)
    done = run_gt("record", "-o", str(path), *options, "--", *command, **environment)
    assert done.returncode == 0, done
    assert f"{path}: " in done.stderr and "instructions of" in done.stderr, done.stderr
    return done.stdout


def replayed(*arguments: object, status: int = 0, **environment: str) -> str:
    """Replay a recording; return the output."""
    done = run_gt("replay", *map(str, arguments), **environment)
    assert done.returncode == status, done
    assert done.stderr == "", done
    return done.stdout


def refused(*arguments: object, command: str = "replay", status: int = 2) -> str:
    """Return the error of a command that is refused."""
    done = run_gt(command, *map(str, arguments))
    assert (done.returncode, done.stdout) == (status, ""), done
    return done.stderr


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """Return the path of a recording of 60 steps."""
    path = tmp_path_factory.mktemp("recordings") / "run.gts"
    assert record(path, 60) == output_of(PROGRAM, 60)
    return path


def count_of(text: str) -> int:
    """Return the number of instructions that a replay has run."""
    return int(re.search(r"replayed (\d+) instructions", text)[1])


def equal_values(text: str) -> int:
    """Return the number of equal values; all must be equal."""
    assert "differ" not in text and "within" not in text, text
    return int(re.search(r"^(\d+) values are equal", text, re.M)[1])


def test_a_replay_has_the_bits_of_the_program(recording):
    for workers in (1, 2, 3):
        text = replayed(recording, "--workers", workers, "--compare")
        assert equal_values(text) == 12, text
        assert count_of(text) > 2000
        assert f"python {PROGRAM}.py" not in text and f"{PROGRAM}.py 60" in text


def test_a_session_on_a_server_is_recorded_and_replayed_there(tmp_path, recording):
    path = tmp_path / "served.gts"
    with cluster(2) as (address, _):
        assert record(path, 30, address) == output_of(PROGRAM, 30)
        assert equal_values(replayed(path, "--server", address)) == 9
        assert equal_values(replayed(recording, "--server", address, "--exact")) == 12
    assert equal_values(replayed(path)) == 9


def test_a_program_records_with_the_variable_and_keeps_what_exists(tmp_path):
    path = tmp_path / "run.gts"
    path.write_text("mine")
    done = subprocess.run(
        program_command(PROGRAM, 1),
        env={**os.environ, "GT_RECORD": str(path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0 and f"'{path}' exists: this session is" in done.stderr, done
    assert path.read_text() == "mine"
    assert equal_values(replayed(tmp_path / "run-2.gts")) == 6


def test_data_that_is_loaded_is_in_the_recording(tmp_path):
    path, folder = tmp_path / "run.gts", tmp_path / "values"
    folder.mkdir()
    command = program_command("recording/loading", folder)
    done = run_gt("record", "-o", str(path), "--", *command)
    assert (done.returncode, done.stdout) == (0, "49995000.0\n"), done
    for file in folder.rglob("*"):
        if file.is_file():
            file.unlink()
    assert equal_values(replayed(path)) == 1
    assert not any(file.is_file() for file in folder.rglob("*"))


def test_what_is_read_of_a_publication_is_in_the_recording(tmp_path):
    path, hidden = tmp_path / "run.gts", tmp_path / "hidden.gts"
    with cluster(1) as (address, _):
        output_of("recording/publishing", address, "publish")
        command = program_command("recording/publishing", address, "read")
        done = run_gt("record", "-o", str(path), "--", *command)
        assert (done.returncode, done.stdout) == (0, "14.0 [0.0, 2.0, 4.0, 6.0]\n"), done
        run_gt("record", "-o", str(hidden), "--anonymous", "--", *command)
    # The server and its publications are gone.
    assert equal_values(replayed(path)) >= 2
    assert equal_values(replayed(path, "--backend", "numpy")) >= 2
    replayed(hidden)


@linux_only
def test_each_session_has_a_recording_and_forks_have_none(tmp_path):
    path = tmp_path / "run.gts"
    command = program_command("recording/sessions")
    done = run_gt("record", "-o", str(path), "--", *command)
    assert (done.returncode, done.stdout.split()) == (0, ["6.0", "600.0", "35.0", "18.0"]), done
    assert "this session is recorded into" in done.stderr
    assert sorted(each.name for each in tmp_path.iterdir()) == ["run-2.gts", "run.gts"]
    assert equal_values(replayed(path)) == 2
    assert equal_values(replayed(tmp_path / "run-2.gts")) == 1


def test_a_recording_that_cannot_be_written_is_refused(tmp_path):
    text = refused("-o", tmp_path / "no" / "run.gts", "--", "true", command="record")
    assert "No such file or directory" in text and "hint: name a file in a folder" in text
    (tmp_path / "notes.txt").write_text("mine")
    text = refused("-o", tmp_path / "notes.txt", "--", "true", command="record")
    assert "exists, and is not a recording" in text and "hint" in text
    done = subprocess.run(
        [sys.executable, "-c", "import gt; gt.ones(1)"],
        env={**os.environ, "GT_RECORD": str(tmp_path / "no" / "run.gts")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "GT_RECORD is" in done.stderr and "No such file" in done.stderr, done
    assert "no program" in refused(command="record")
    assert "no program 'nothing-like-it'" in refused(
        "-o", tmp_path / "a.gts", "--", "nothing-like-it", command="record", status=127
    )
    assert "has opened no session" in refused(
        "-o", tmp_path / "a.gts", "--", "true", command="record", status=1
    )


def test_a_file_that_is_no_recording_is_refused(tmp_path, recording):
    assert "hint" in refused(tmp_path / "none.gts")
    foreign = tmp_path / "foreign.gts"
    foreign.write_bytes(b"\x00" * 100)
    assert "is not a recording\n  hint: `gt record" in refused(foreign)
    foreign.write_bytes(b"")
    assert "has no stream in it" in refused(foreign)
    whole = bytearray(recording.read_bytes())
    whole[1000] ^= 1
    foreign.write_bytes(whole)
    text = refused(foreign)
    assert "is damaged at byte 24: " in text and text.endswith("from its origin again\n"), text
    whole[1000] ^= 1
    whole[-500] ^= 1
    foreign.write_bytes(whole)
    text = refused(foreign)
    assert "is damaged at byte" in text and "--until" in text, text
    until = re.search(r"--until (\d+)", text)[1]
    assert count_of(replayed(foreign, "--until", until)) == int(until)


def test_a_file_that_is_cut_short_is_replayed_up_to_there(tmp_path, recording):
    whole, cut = recording.read_bytes(), tmp_path / "cut.gts"
    cut.write_bytes(whole[:-300])
    text = replayed(cut)
    assert "it is cut short at byte" in text and equal_values(text) < 12, text
    cut.write_bytes(whole[:-10])
    assert "it is cut short" in replayed(cut)


@linux_only
def test_a_program_that_is_killed_leaves_a_recording(tmp_path):
    path = tmp_path / "killed.gts"
    process = subprocess.Popen(
        program_command(PROGRAM, 100_000),
        env={**os.environ, "GT_RECORD": str(path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    for _ in range(5):
        assert process.stdout.readline()
    time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    text = replayed(path)
    assert "it is cut short" in text and equal_values(text) >= 5, text


def test_a_replay_stops_after_an_instruction(recording):
    text = replayed(recording, "--until", 40)
    assert "replayed 40 instructions" in text and "instruction 40: " in text, text
    assert " of bool (64,) and " in text and f"{PROGRAM}.py:" in text, text
    for number in (1500, 1501, 1777):
        text = replayed(recording, "--until", number, "--workers", 2)
        assert f"replayed {number} instructions" in text and "its result: " in text, text
    text = refused(recording, "--until", 10**9)
    assert "--until is 1000000000, and the recording has" in text


@contextmanager
def changed(path, old: bytes, new: bytes):
    """Change bytes of a record of a file, and its checksum."""
    from zlib import crc32

    whole = bytearray(path.read_bytes())
    at, place = 24, whole.index(old)
    while True:
        length = int.from_bytes(whole[at : at + 8], "little")
        if place < at + 12 + length:
            break
        at += 12 + length
    whole[place : place + len(old)] = new
    body = whole[at : at + 8] + whole[at + 12 : at + 12 + length]
    whole[at + 8 : at + 12] = crc32(body).to_bytes(4, "little")
    copy = path.with_name("changed.gts")
    copy.write_bytes(whole)
    yield copy
    copy.unlink()


def test_only_an_operation_that_does_not_exist_is_refused(recording):
    with changed(recording, b"\x05atan2", b"\x05atanx") as copy:
        replayed(copy)
    with changed(recording, b"\x04relu", b"\x04rexu") as copy:
        text = refused(copy)
    assert "uses the operation 'rexu', which this gt" in text and "hint: gt 0." in text, text


def test_the_first_instruction_that_differs_is_found(recording):
    wrong = ("--backend", "wrong_engine:WrongEngine")
    text = replayed(recording, *wrong, status=1, **SUPPORT)
    assert "hint: --compare finds" in text and "recorded: float32 ()" in text, text
    text = replayed(recording, *wrong, "--compare", status=1, **SUPPORT)
    found = re.search(
        r"the first instruction that differs is number (\d+): relu of float32 \(64, 32\)\n"
        rf"  issued at {re.escape(line_in_program(PROGRAM, 'cross_entropy('))}.*\n"
        r"  one native worker +float32 \(64, 32\): .*\n"
        r"  one wrong_engine:WrongEngine worker +float32 \(64, 32\): .*\n"
        r"  the largest difference is 2.5e-1, at element \d+: ",
        text,
    )
    assert found and int(found[1]) < 100, text


def test_rounding_that_adds_up_is_no_wrong_instruction(tmp_path):
    path = tmp_path / "long.gts"
    record(path, 300)
    engine = ("--backend", "numpy", "--compare")
    text = replayed(path, *engine, "--rtol", 1e-9, "--atol", 1e-12, status=1)
    assert "the first instruction that differs is number" in text, text
    text = replayed(path, "--backend", "wrong_engine:LateEngine", "--compare", status=1, **SUPPORT)
    found = re.search(r"differs is number (\d+): relu of float32 \(64, 32\)\n", text)
    assert found and int(found[1]) > 7000, text
    assert "the largest difference is 5.0" in text or "is 5e-1" in text, text


def test_a_script_computes_the_same_values(tmp_path, recording):
    script = tmp_path / "again.py"
    text = replayed(recording, "--script", script)
    assert f"wrote {script} and {tmp_path / 'again.npz'}" in text
    source = script.read_text()
    assert set(re.findall(r"^(?:from|import) (\w+)", source, re.M)) == {"gt", "numpy", "pathlib"}
    assert line_in_program(PROGRAM, "cross_entropy(") in source
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=120, check=True
    )
    values = [line.split(" ", 1)[1] for line in done.stdout.splitlines()]
    printed = output_of(PROGRAM, 60).splitlines()
    assert [f"{float(value):.6f}" for value in values[:6]] == printed[:6]
    assert printed[6] in values and printed[8] in values and printed[10] == values[-1]
    assert any(value.startswith("failed: ") and "index 77" in value for value in values)
    script = tmp_path / "part.py"
    replayed(recording, "--script", script, "--until", 100)
    assert script.read_text().count(" = op.") == 100
    subprocess.run([sys.executable, script], capture_output=True, timeout=60, check=True)


def test_an_anonymous_recording_has_neither_data_nor_names(tmp_path):
    import numpy as np

    path = tmp_path / "hidden.gts"
    output = record(path, 20, options=("--anonymous",), GT_HOME="/folder-of-lovelace")
    content = path.read_bytes()
    table = np.arange(40, dtype="float32")[:, None] * 7 + np.arange(80, dtype="float32")
    assert table.tobytes()[:64] not in content
    for value in output.split()[:2]:
        assert np.float32(value).tobytes() not in content
    for text in ("training", "lovelace", ".py", str(tmp_path), "localhost", "77 is"):
        assert text.encode() not in content, text
    text = replayed(path, "--workers", 2, "--compare")
    assert "it has no data" in text and "0 values are equal" in text, text
    assert "8 are not recorded" in text, text
    script = tmp_path / "hidden.py"
    replayed(path, "--script", script)
    assert "training" not in script.read_text()
    subprocess.run([sys.executable, script], capture_output=True, timeout=60, check=True)
