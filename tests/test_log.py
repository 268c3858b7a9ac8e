"""The instruction log: its format is stable, since other tools read it."""

import re

import pytest
from processes import embedded_only, run_program, run_python

pytestmark = embedded_only

LINE = re.compile(
    r"(?P<elapsed>\d+\.\d{3})s \| #(?P<number>\d{4,}) \| (?P<event>[A-Z_]+) *\| "
    r"(?P<party>CLIENT|WORKER) (?P<id>\S+) *\| (?P<command>\w+) *\| *(?P<bytes>\d+)B \| "
    r"(?P<details>(?:connected|disconnected|\w+=.*)?)$"
)


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "gt.log"
    done = run_program("log/operations", GT_INSTRUCTION_LOG=str(path))
    assert (done.returncode, done.stderr) == (0, "")
    text = path.read_text()
    assert text.endswith("\n")
    return text.splitlines()


def test_every_line_has_the_format(lines):
    for line in lines:
        assert LINE.fullmatch(line), line


def test_numbers_increase_by_one_and_times_never_decrease(lines):
    matches = [LINE.fullmatch(line) for line in lines]
    assert [int(m["number"]) for m in matches] == list(range(1, len(lines) + 1))
    times = [float(m["elapsed"]) for m in matches]
    assert times == sorted(times)


def test_every_command_is_logged(lines):
    matches = [LINE.fullmatch(line) for line in lines]
    seen = {(m["event"], m["party"], m["command"]) for m in matches}
    received = "CreateTensor BinaryOp UnaryOp ReduceOp GetData FreeTensor".split()
    for command in received:
        assert ("RECV", "CLIENT", command) in seen, sorted(seen)
        assert ("WORKER_SEND", "WORKER", f"Worker{command}") in seen, sorted(seen)
    assert {m["event"] for m in matches} >= {"CONNECT", "SEND", "WORKER_RECV"}


def test_details_name_operation_and_operands(lines):
    details = [LINE.fullmatch(line)["details"] for line in lines]
    assert any(re.match(r"result=\d+ op=add left=(\d+) right=\1$", d) for d in details), details
    assert any(re.match(r"result=\d+ op=mul left=\d+ right=scalar\(2\)$", d) for d in details), (
        details
    )
    assert any(re.match(r"result=\d+ op=exp input=\d+$", d) for d in details), details


def test_a_log_that_cannot_be_written_is_reported(tmp_path):
    path = tmp_path / "missing" / "gt.log"
    done = run_python("import gt; gt.ones(1)", GT_INSTRUCTION_LOG=str(path))
    assert done.returncode == 0 and str(path) in done.stderr, done


def test_variables_select_what_the_terminal_shows():
    code = "import gt; (gt.ones(2) + 1).tolist()"
    assert run_python(code).stderr == ""
    assert run_python(code, GT_VERBOSE="0").stderr == ""
    for variable, has, has_not in [
        ("GT_VERBOSE", "CONNECT", "BinaryOp"),
        ("GT_DEBUG_CLIENT", "RECV", "WORKER_SEND"),
        ("GT_DEBUG_WORKER", "WORKER_SEND", "| RECV"),
        ("GT_DEBUG_DISPATCHER", "WorkerBinaryOp", "nothing"),
    ]:
        shown = run_python(code, **{variable: "1"}).stderr
        assert has in shown and has_not not in shown, (variable, shown)
