"""Engines that raise, return wrong tensors, hang or die: outputs report the error."""

import json
import math
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from processes import cluster, line_in_program, run_program, run_python, start_program

HERE = str(Path(__file__).parent)

#: A program that computes an operation that may fail, and then another.
PROGRAM = "engines/failing_operation"

LOOP = (
    "import gt\n"
    "x = gt.ones(4)\n"
    "for step in range(40): x = (x * 0.5).exp() - 0.8\n"
    "print([round(value, 4) for value in x.tolist()])\n"
)


def paths() -> str:
    return f"{HERE}:{os.environ.get('PYTHONPATH', HERE)}"


def backend(name: str) -> dict[str, str]:
    return {"GT_BACKEND": f"bad_engines:{name}", "PYTHONPATH": paths()}


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ("Raising", ["tanh of float32 (4,)", "'missing' is not defined", "bad_engines.py"]),
        ("Misshapen", ["tanh of float32 (4,)", "float32 (3,)", "expected float32 (4,)"]),
        ("Sometimes", ["tanh of float32 (4,)", "float32 (3,)", "expected float32 (4,)"]),
        ("Narrow", ["gave float16 (4,) for tanh, expected float32 (4,)"]),
        ("Nothing", ["tanh of float32 (4,)", "gave a NoneType for tanh, not described"]),
        ("Tuple", ["tanh of float32 (4,)", "gave a tuple for tanh, not described"]),
        ("Number", ["tanh of float32 (4,)", "gave a float for tanh, not described"]),
        ("Strange", ["tanh of float32 (4,)", "gave a Shapeless for tanh, not described"]),
        ("Exiting", ["tanh of float32 (4,)", "SystemExit: 5"]),
        ("OneOfTwo", ["sort of float32 (4,)", "gave 1 results for sort, expected a tuple of 2"]),
        ("NoTuple", ["sort of float32 (4,)", "gave a ndarray for sort, expected a tuple of 2"]),
        ("Endless", ["sort of float32 (4,)", "gave a repeat for sort, expected a tuple of 2"]),
    ],
)
def test_the_outputs_carry_the_error_and_the_worker_goes_on(engine, words):
    operation = "sort" if words[0].startswith("sort") else "tanh"
    done = run_program(PROGRAM, operation, **backend(engine))
    assert done.returncode == 0, done.stderr
    for word in (*words, line_in_program(PROGRAM, "y = (x.tanh()")):
        assert word in done.stdout, done.stdout
    assert done.stdout.endswith("[6.0, 6.0, 6.0, 6.0]\n")


@contextmanager
def worker(address: str, engine: str, timeout: int = 1):
    """Yield the process of a worker with a bad engine."""
    port = address.rpartition(":")[2]
    command = [sys.executable, "-m", "gt.worker", "-p", port, "--id", "bad"]
    command += ["--backend", f"bad_engines:{engine}"]
    env = {**os.environ, "PYTHONPATH": paths(), "GT_ENGINE_TIMEOUT": str(timeout)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, env=env, **pipes)
    try:
        assert process.stdout.readline().startswith("gt worker: bad")
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("engine", ["Hanging", "Dying"])
def test_a_worker_whose_engine_is_lost_is_lost_alone(engine):
    with cluster(workers=1) as (address, _), worker(address, engine) as bad:
        done = run_program("engines/on_worker_1", address)
        # The other worker computes the tensor instead.
        assert "the worker 'bad' was lost" in done.stderr, (done.stdout, done.stderr)
        values, others = done.stdout.splitlines()
        assert json.loads(values) == pytest.approx([math.tanh(1)] * 4) and others == "[2.0, 2.0]"
        _, stderr = bad.communicate(timeout=20)
        assert bad.returncode == (3 if engine == "Hanging" else 9)
        if engine == "Hanging":
            assert "has not come back for 1 s" in stderr


@pytest.mark.parametrize(("number", "ending"), [("SIGTERM", "drained"), ("SIGINT", "stopped")])
def test_a_worker_ends_at_a_signal_that_its_engine_swallows(number, ending):
    """What interrupts a wait of the main thread is raised in the engine's code, and lost there."""
    with (
        cluster(workers=1) as (address, _),
        worker(address, "Swallowing", timeout=60) as process,
        start_program("engines/on_worker_1", address) as client,
    ):
        # After what the worker has.
        assert process.stdout.readline().startswith("  swallowing")
        assert process.stdout.readline() == "at work\n"
        process.send_signal(getattr(signal, number))
        assert process.communicate(timeout=20) == (f"gt worker: bad {ending}\n", "")
        assert process.returncode == 0
        output, errors = client.communicate(timeout=30)
        assert client.returncode == 0, errors
        assert json.loads(output.splitlines()[0]) == pytest.approx([math.tanh(1)] * 4)


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ("NoCreate", "create: unavailable"),
        ("NoRead", "fetch: unavailable"),
        ("ShortRead", "fetch: read gave 3 bytes for float32 (2,), which has 8"),
        ("NoDescribe", "not described: unavailable"),
        ("NoLowering", "add of float32 (2,) and 1: unavailable"),
    ],
)
def test_a_method_that_fails_fails_what_needs_it(engine, words):
    program = (
        "import gt\n"
        "for _ in range(2):\n"
        "    try: print((gt.tensor([1.0, 2.0]) + 1).tolist())\n"
        "    except gt.WorkerError as error: print(error)\n"
        "print(gt.status().workers[0]['engine'])\n"
    )
    done = run_python(program, **backend(engine))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(words) == 2 and done.stdout.endswith(f"{engine.lower()}\n"), (
        done.stdout
    )


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ("NotMade", "RuntimeError: unavailable"),
        ("NoLowers", "RuntimeError: unavailable"),
        ("LeavesEarly", "the engine 'bad_engines:LeavesEarly' raises SystemExit"),
    ],
)
def test_an_engine_that_cannot_be_made_is_an_error_of_who_asks(engine, words):
    program = (
        "import gt\n"
        "try: gt.ones(2)\n"
        "except Exception as error: print(f'{type(error).__name__}: {error}')\n"
    )
    done = run_python(program, **backend(engine))
    assert (done.returncode, done.stderr) == (0, "") and words in done.stdout, done
    command = [sys.executable, "-m", "gt.worker", "-p", "1", "--backend", f"bad_engines:{engine}"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=30,
        env={**os.environ, "PYTHONPATH": paths()},
    )
    assert done.returncode == 1 and words in done.stderr, done


def test_what_leaves_while_it_compiles_runs_all_the_same():
    want = run_python(LOOP).stdout
    done = run_python(LOOP, GT_COMPILE="1", **backend("LeavesCompiling"))
    assert (done.returncode, done.stdout) == (0, want), done.stderr
    assert "SystemExit: 5" in done.stderr and "operation by operation" in done.stderr


def test_an_engine_that_cannot_release_memory_goes_on():
    use = "print(gt.ones(2).tolist())\n"
    program = f"import gt\n{use}gt.disconnect()\ngt.gpu_workers(1)\n{use}"
    done = run_python(program, **backend("NoRelease"))
    assert (done.returncode, done.stdout) == (0, "[1.0, 1.0]\n" * 2), done.stderr


def test_a_view_of_an_operand_is_a_tensor_of_its_own():
    """A change in place affects one tensor, even if the engine's tensors share memory."""
    done = run_program("engines/in_place", **backend("Viewing"))
    assert done.stdout == "[9.0, 3.0, 4.0] [2.0, 4.0, 6.0] [1.0, 2.0, 3.0]\n", done.stderr


def test_what_an_engine_keeps_is_not_counted_as_the_users():
    program = (
        "import gt\n"
        "for _ in range(20): gt.ones(1000).tanh().sum().item()\n"
        "gt.synchronize()\n"
        "worker = gt.status().workers[0]\n"
        "print(worker['tensors'], worker['bytes'])\n"
    )
    assert run_python(program, **backend("Keeping")).stdout == "0 0\n"


def test_what_an_engine_prints_goes_where_its_process_prints():
    done = run_python("import gt\nprint(gt.zeros(2).tanh().tolist())", **backend("Printing"))
    assert done.stdout == "from the engine\n[0.0, 0.0]\n", done.stderr
    with cluster(workers=0) as (address, _), worker(address, "Printing") as process:
        done = run_python(f"import gt\ngt.connect('{address}')\nprint(gt.zeros(2).tanh().tolist())")
        assert (done.stdout, done.stderr) == ("[0.0, 0.0]\n", "")
        process.terminate()
        assert "from the engine\n" in process.communicate(timeout=20)[0]


@pytest.mark.parametrize("engine", ["Forking", "Pooling"])
def test_a_copy_of_the_process_that_an_engine_makes_ends_with_the_operation(engine):
    program = (
        "print(gt.zeros(4).tanh().tolist())\n"
        "x = gt.ones(2) + 1\n"
        "print([round(value, 3) for value in (x.tanh() * x).tolist()])\n"
    )
    want = "[0.0, 0.0, 0.0, 0.0]\n[1.928, 1.928]\n"
    done = run_python("import gt\n" + program, **backend(engine))
    assert (done.returncode, done.stdout) == (0, want), done.stderr
    with cluster(workers=0) as (address, _), worker(address, engine, timeout=30):
        for _ in range(2):
            done = run_python(f"import gt\ngt.connect('{address}')\n" + program)
            assert (done.returncode, done.stdout) == (0, want), done.stderr


@pytest.mark.parametrize("engine", ["Exiting", "Interrupted", "Nothing"])
def test_a_worker_goes_on_whatever_its_engine_raises(engine):
    with cluster(workers=0) as (address, _), worker(address, engine) as process:
        done = run_program(PROGRAM, "tanh", address)
        assert "tanh of float32 (4,)" in done.stdout, (done.stdout, done.stderr)
        assert done.stdout.endswith("[6.0, 6.0, 6.0, 6.0]\n") and process.poll() is None


def test_what_is_compiled_wrongly_is_found_out():
    want = run_python(LOOP).stdout
    done = run_python(LOOP, GT_COMPILE="1", **backend("BadCompiler"))
    assert done.stdout == want
    assert done.stderr.count("gt: warning:") == 1 and "instead of" in done.stderr, done.stderr


def test_what_cannot_be_compiled_runs_all_the_same():
    want = run_python(LOOP).stdout
    done = run_python(LOOP, GT_COMPILE="1", **backend("NoCompiler"))
    assert done.stdout == want
    assert done.stderr.count("gt: warning:") == 1, done.stderr
    for word in ("operations (", "exp", "is unavailable", "operation by operation"):
        assert word in done.stderr


def test_what_takes_too_long_to_compile_runs_all_the_same():
    program = "engines/loop_twice"
    want = run_program(program).stdout
    done = run_program(program, GT_COMPILE_TIMEOUT="0.5", **backend("SlowCompiler"))
    assert done.stdout == want
    assert "longer than" in done.stderr, done.stderr


def test_engines_of_several_kinds_serve_one_session():
    with cluster(workers=1) as (address, processes):
        port = address.rpartition(":")[2]
        command = [sys.executable, "-m", "gt.worker", "-p", port, "--id", "1", "--backend", "numpy"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        other = subprocess.Popen(command, **pipes)
        try:
            assert other.stdout.readline().startswith("gt worker: 1")
            done = run_program("engines/sharded_rows", address)
            kinds, total = done.stdout.splitlines()
            assert kinds == "['native', 'numpy']", done.stderr
            alone = run_program("engines/sharded_rows")
            assert abs(float(total) - float(alone.stdout.splitlines()[1])) < 2, done.stdout
        finally:
            other.terminate()
            other.communicate(timeout=20)


def test_an_engine_that_is_not_there_is_named():
    done = run_python("import gt; gt.ones(1).item()", GT_BACKEND="pytroch")
    assert "ValueError" in done.stderr and "did you mean 'pytorch'?" in done.stderr
    command = [sys.executable, "-m", "gt.worker", "--backend", "nmpy"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and "did you mean 'numpy'?" in done.stderr, done.stderr
