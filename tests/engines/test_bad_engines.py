"""Engines that raise, lie, hang or die: the plan's outputs say so, and the worker goes on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from processes import cluster, run_python

HERE = str(Path(__file__).parent)

AFTER = (
    "import gt\n"
    "x = gt.ones(4) + 1\n"
    "y = x.tanh() * 2\n"
    "try: print(y.tolist())\n"
    "except gt.WorkerError as error: print(error)\n"
    "print((x * 3).tolist())\n"
)

LOOP = (
    "import gt\n"
    "x = gt.ones(4)\n"
    "for step in range(40): x = (x * 0.5).exp() - 0.8\n"
    "print([round(value, 4) for value in x.tolist()])\n"
)


def backend(name: str) -> dict[str, str]:
    paths = [HERE, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"GT_BACKEND": f"bad_engines:{name}", "PYTHONPATH": os.pathsep.join(paths)}


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ("Raising", ["tanh of float32 (4,)", "'missing' is not defined", "bad_engines.py"]),
        ("Misshapen", ["tanh of float32 (4,)", "float32 (3,)", "expected float32 (4,)"]),
    ],
)
def test_the_outputs_carry_the_error_and_the_worker_goes_on(engine, words):
    done = run_python(AFTER, **backend(engine))
    assert done.returncode == 0, done.stderr
    for word in words:
        assert word in done.stdout, done.stdout
    assert "<string>:4" in done.stdout and done.stdout.endswith("[6.0, 6.0, 6.0, 6.0]\n")


@pytest.mark.parametrize("engine", ["Hanging", "Dying"])
def test_a_worker_whose_engine_is_lost_is_lost_alone(engine):
    with cluster(workers=1) as (address, processes):
        port = address.rpartition(":")[2]
        command = [sys.executable, "-m", "gt.worker", "-p", port, "--id", "bad"]
        command += ["--backend", f"bad_engines:{engine}"]
        env = {**os.environ, **backend(engine), "GT_ENGINE_TIMEOUT": "1"}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        bad = subprocess.Popen(command, env=env, **pipes)
        assert bad.stdout.readline().startswith("gt worker: bad")
        program = (
            f"import gt\ngt.connect('{address}')\n"
            "gt.register_config('bad', gt.SignalConfig(gt.ShardConfig(axis=0, workers=[1])))\n"
            "with gt.signal.context('bad'):\n"
            "    y = gt.ones(4).tanh()\n"
            "try: print(y.tolist())\n"
            "except gt.WorkerError as error: print(error)\n"
            "print((gt.ones(2) + 1).tolist())\n"
        )
        done = run_python(program)
        assert "'bad'" in done.stdout and "lost" in done.stdout, (done.stdout, done.stderr)
        assert done.stdout.endswith("[2.0, 2.0]\n")
        _, stderr = bad.communicate(timeout=20)
        assert bad.returncode == (3 if engine == "Hanging" else 9)
        if engine == "Hanging":
            assert "has not come back for 1 s" in stderr


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
    for word in ("operations (", "exp", "not at home", "operation by operation"):
        assert word in done.stderr


def test_what_takes_too_long_to_compile_runs_all_the_same():
    program = (
        "import gt, time\n"
        "def loop(x):\n"
        "    for step in range(40): x = (x * 0.5).exp() - 1\n"
        "    x.sum().item()\n"
        "    return x\n"
        "x = loop(gt.ones(4))\n"
        "time.sleep(1)\n"
        "print([round(value, 4) for value in loop(x).tolist()])\n"
    )
    want = run_python(program).stdout
    done = run_python(program, GT_COMPILE_TIMEOUT="0.5", **backend("SlowCompiler"))
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
            program = (
                f"import gt\ngt.connect('{address}')\n"
                "gt.register_config('rows', gt.SignalConfig(gt.ShardConfig(axis=0)))\n"
                "kinds = [w['engine'] for w in gt.debug.get_worker_stats().values()]\n"
                "print(sorted(kinds))\n"
                "with gt.signal.context('rows'):\n"
                "    x = gt.arange(12).reshape(6, 2).float()\n"
                "    w = gt.eye(2) * 2\n"
                "    for step in range(40): x = (x @ w).tanh() + x.to('bfloat16').float()\n"
                "    print(round(x.sum().item(), 1))\n"
            )
            done = run_python(program)
            kinds, total = done.stdout.splitlines()
            assert kinds == "['native', 'numpy']", done.stderr
            alone = run_python(program.replace(f"gt.connect('{address}')", ""))
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
