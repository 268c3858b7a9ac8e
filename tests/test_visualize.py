"""`gt visualize`: pictures of traces and logs."""

import json
import xml.etree.ElementTree as xml

import numpy as np
import pytest
from processes import embedded_only, one_engine_only, program, run_gt, run_python

pytestmark = [embedded_only, one_engine_only]


@pytest.mark.parametrize("name", ["timeline.png", "timeline.svg", "timeline.json"])
def test_a_trace_is_drawn(trace_file, tmp_path, name):
    path = tmp_path / name
    done = run_gt("visualize", str(trace_file), "-o", str(path), "--dpi", "60", "--width", "8")
    assert (done.returncode, done.stderr) == (0, ""), done
    assert str(path) in done.stdout and "lanes" in done.stdout
    if name.endswith("png"):
        import matplotlib.image

        pixels = matplotlib.image.imread(path)
        assert pixels.shape[:2] == (600, 480)
        assert np.unique(pixels.reshape(-1, pixels.shape[-1]), axis=0).shape[0] > 10
    elif name.endswith("svg"):
        text = "".join(xml.parse(path).getroot().itertext())
        assert "matmul" in text or "hot path" in text
    else:
        events = json.loads(path.read_text())["traceEvents"]
        check_nesting(events)


def check_nesting(events):
    """Check that slices of a thread nest, and that flows begin and end within slices."""
    threads = {}
    for event in events:
        if event["ph"] == "X":
            threads.setdefault((event["pid"], event["tid"]), []).append(event)
    assert threads
    for slices in threads.values():
        open_until = []
        for item in sorted(slices, key=lambda item: (item["ts"], -item["dur"])):
            begin, end = item["ts"], item["ts"] + item["dur"]
            while open_until and open_until[-1] <= begin + 1e-3:
                open_until.pop()
            assert not open_until or end <= open_until[-1] + 1e-3, item
            open_until.append(end)
    for event in events:
        if event["ph"] in "sf":
            slices = threads[event["pid"], event["tid"]]
            at = event["ts"]
            assert any(s["ts"] - 1e-3 <= at <= s["ts"] + s["dur"] + 1e-3 for s in slices), event


def test_redistributions_between_workers_are_flows(tmp_path):
    log, picture = tmp_path / "moves.log", tmp_path / "moves.json"
    with program(name="watching/sharded_loop") as process:
        command = ["trace", "-s", "0.5", "--pid", str(process.pid)]
        done = run_gt(*command, "--dir", str(tmp_path), "-o", "moves.log")
    assert done.returncode == 0, done
    done = run_gt("visualize", str(log), "-o", str(picture))
    assert done.returncode == 0, done
    events = json.loads(picture.read_text())["traceEvents"]
    check_nesting(events)
    begins = [event["id"] for event in events if event["ph"] == "s"]
    ends = [event["id"] for event in events if event["ph"] == "f"]
    assert begins and sorted(begins) == sorted(ends)


def test_an_instruction_log_is_drawn(tmp_path):
    log, picture = tmp_path / "gt.log", tmp_path / "gt.svg"
    done = run_python(
        "import gt; x = gt.randn(200, 200); (x @ x).relu().sum().item()",
        GT_INSTRUCTION_LOG=str(log),
    )
    assert done.returncode == 0, done
    done = run_gt("visualize", str(log), "-o", str(picture))
    assert done.returncode == 0, done
    assert "matmul" in picture.read_text()


def test_a_log_without_times_is_drawn_from_requests_and_answers(tmp_path):
    log, picture = tmp_path / "old.log", tmp_path / "old.svg"
    log.write_text(
        "1.608s | #0011 | RECV | CLIENT 006b8b4568 | BinaryOp | 117B | result=2 op=add\n"
        "1.608s | #0012 | WORKER_SEND | WORKER auto_worker | WorkerBinaryOp | 152B | op=add\n"
        "1.613s | #0013 | WORKER_RECV | WORKER auto_worker | WorkerBinaryOp | 91B | success=True\n"
    )
    done = run_gt("visualize", str(log), "-o", str(picture))
    assert done.returncode == 0, done
    assert "5.00 ms" in picture.read_text() and "auto_worker" in picture.read_text()


def test_a_truncated_log_is_drawn_and_reported(trace_file, tmp_path):
    cut = tmp_path / "cut.log"
    cut.write_bytes(trace_file.read_bytes()[:-60])
    done = run_gt("visualize", str(cut), "-o", str(tmp_path / "cut.svg"))
    assert done.returncode == 0 and "is incomplete" in done.stderr, done


@pytest.mark.parametrize(
    "text,expected",
    [
        ("hello\nworld\n", "line 1: 'hello' is no time"),
        ("", "has no events"),
        ("1.000s | #0001 | RECV | CLIENT x | BinaryOp | 1B | \nnonsense\nmore\n", "line 2"),
        (
            "1.000s | #0001 | ISSUE | CLIENT x | Batch | 1B | begin=nan end=1\nmore\n",
            "line 1: begin=NaN",
        ),
        ("[TAPE 0.003s] RECV | 127.0.0.1 | BinaryOp | result=2\n", "line 1"),
    ],
)
def test_invalid_logs_are_reported_with_the_line(tmp_path, text, expected):
    path = tmp_path / "bad.log"
    path.write_text(text)
    done = run_gt("visualize", str(path), "-o", str(tmp_path / "bad.png"))
    assert done.returncode == 1 and expected in done.stderr and "hint" in done.stderr, done
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "bad.png").exists()


def test_bad_options_and_paths_are_reported(trace_file, tmp_path):
    missing = run_gt("visualize", str(tmp_path / "none.log"))
    assert missing.returncode == 1 and "none.log" in missing.stderr, missing
    unwritable = run_gt("visualize", str(trace_file), "-o", str(tmp_path / "no" / "x.png"))
    assert unwritable.returncode == 1 and "x.png" in unwritable.stderr, unwritable
    unknown = run_gt("visualize", str(trace_file), "-o", str(tmp_path / "picture.gif"))
    assert unknown.returncode == 1 and "--format" in unknown.stderr, unknown
    for option in (["--dpi", "0"], ["--width", "-1"], ["--height", "1e9"], ["--dpi", "nan"]):
        bad = run_gt("visualize", str(trace_file), "-o", str(tmp_path / "x.png"), *option)
        assert bad.returncode == 1 and "expected" in bad.stderr, bad


def test_a_picture_does_not_overwrite_its_log(trace_file, tmp_path):
    path = tmp_path / "trace.log"
    path.write_bytes(trace_file.read_bytes())
    done = run_gt("visualize", str(path), "-o", str(path), "--format", "svg")
    assert done.returncode == 1 and "is the log itself" in done.stderr, done
    assert path.read_bytes() == trace_file.read_bytes()
    picture = tmp_path / "picture.svg"
    picture.write_text("the one before")
    done = run_gt("visualize", str(tmp_path / "none.log"), "-o", str(picture))
    assert done.returncode == 1 and picture.read_text() == "the one before", done
    assert run_gt("visualize", str(path), "-o", str(picture)).returncode == 0
    assert sorted(tmp_path.iterdir()) == [picture, path]


def test_error_messages_about_binary_files_are_printable(tmp_path):
    path = tmp_path / "foreign.log"
    path.write_bytes(b"\x1b[31m\x00\x7f|\n" * 3)
    done = run_gt("visualize", str(path), "-o", str(tmp_path / "a.svg"))
    assert done.returncode == 1 and "line 1" in done.stderr, done
    assert all(letter.isprintable() or letter == "\n" for letter in done.stderr), done.stderr
