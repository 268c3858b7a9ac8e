"""The parts of the tests, and which suites run again in another configuration, and why.

Every test runs once, embedded and on the default engine. Some run again: on a server, with
everything sharded over three workers, and on each engine. Each configuration repeats the suites
whose results it can change, for the reasons given beside the lists.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable

#: Tests that measure time, memory or processors of the whole machine, or depend on timing within
#: half a second: they run alone, after the others.
ALONE = [
    "tests/test_isolation.py",
    "tests/test_lifecycle.py",
    "tests/test_policy.py",
    "tests/test_soak.py",
    "tests/test_trace.py",
    "tests/engines/test_collectives.py",
]

#: A server can change everything that crosses a link (data of every dtype, errors, waits, sessions,
#: signals, hot paths, recovery) and programs as users write them. Left out: suites that start
#: servers themselves; those of code that runs in one process (text, types, loaders, file formats);
#: and single operations, as the stream of instructions is the same in both configurations and the
#: encoding of each operation is tested in gt-ir.
ON_SERVER = [
    "tests/test_amp.py",
    "tests/test_arrays.py",
    "tests/test_autograd.py",
    "tests/test_autograd_function.py",
    "tests/test_bits.py",
    "tests/test_data_dependent_shapes.py",
    "tests/test_default_dtype.py",
    "tests/test_error_words.py",
    "tests/test_errors.py",
    "tests/test_hotpaths.py",
    "tests/test_hotpaths_disturbed.py",
    "tests/test_programs_of_pytorch.py",
    "tests/test_signal.py",
    "tests/test_status.py",
    "tests/test_tensor.py",
    "tests/test_views.py",
    "tests/checkpoint",
    "tests/formats/test_files.py",
    "tests/models/test_techniques.py",
    "tests/nn/test_nn.py",
    "tests/optim",
    "tests/ops/test_creation.py",
    "tests/ops/test_random.py",
]

#: Sharding can change the results of every operation and of its gradient, with uneven shards, and
#: of programs built of them. Left out: composites and modules that are compared with PyTorch once,
#: as their operations are tested in tests/ops; servers, tools, files and loaders.
SHARDED = [
    "tests/test_arrays.py",
    "tests/test_autograd.py",
    "tests/test_autograd_function.py",
    "tests/test_data_dependent_shapes.py",
    "tests/test_errors.py",
    "tests/test_func.py",
    "tests/test_hotpaths.py",
    "tests/test_programs_of_pytorch.py",
    "tests/test_tensor.py",
    "tests/test_views.py",
    "tests/test_vmap.py",
    "tests/checkpoint/test_checkpoints.py",
    "tests/nn",
    "tests/ops",
    "tests/optim",
]

#: An engine can change the results of each operation, and the execution of plans. Left out:
#: everything that is independent of engines (text, signals, sessions, sharding, the client's
#: composites).
ON_ENGINES = [
    "tests/test_arrays.py",
    "tests/test_autograd.py",
    "tests/test_data_dependent_shapes.py",
    "tests/test_hotpaths.py",
    "tests/test_programs_of_pytorch.py",
    "tests/test_tensor.py",
    "tests/nn/test_layers.py",
    "tests/ops",
    "tests/optim",
]

#: Suites that use PyTorch, and those of GT's device in PyTorch.
WITH_TORCH = [
    "tests/coverage",
    "tests/data",
    "tests/distributions",
    "tests/engines",
    "tests/formats",
    "tests/gpu",
    "tests/models",
    "tests/neighbours",
    "tests/nn",
    "tests/ops",
    "tests/optim",
    "tests/torch_device",
]

#: Suites whose results depend on whether operators are called from C++ or from Python.
CALLING = [
    f"tests/torch_device/test_{name}.py"
    for name in ("device", "mistakes", "numbers", "repeated_calls")
]


@dataclass(frozen=True)
class Part:
    """One command of a group of tests."""

    name: str
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)


#: The options of pytest that divide tests among two processes.
DIVIDED = ("-n=2", "--dist=worksteal")


def pytest(*arguments: str, divided: bool = True) -> list[str]:
    """Return the command that runs tests, in two processes if they are divided."""
    return [PYTHON, "-m", "pytest", "-q", *(DIVIDED if divided else ()), *arguments]


def naming_torch() -> list[str]:
    """Return the test files that mention PyTorch, outside the folders in `WITH_TORCH`."""
    return sorted(
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").glob("test_*.py")
        if "torch" in path.read_text()
    )


def without(paths: list[str]) -> list[str]:
    """Return the pytest options that skip these paths."""
    return [f"--ignore={path}" for path in paths]


#: Rust tests link with the crates of the build. gt-python has no tests; it is named so that the
#: features of libraries are the same as in the build, and they are not compiled again.
CARGO = ["cargo", "test", "--release", "--no-fail-fast"]
#: The handover of work between threads, under a model checker instead of the system's threads.
THREADS = ["-p", "gt", "-p", "gt-python", "--features", "gt/model", "--test", "handover"]
#: Only the simulation compiles the cores again, with overflow checks and debug assertions, as it
#: reaches their corner cases.
CHECKED = ["--config", "tools/checked.toml"]


def groups() -> dict[str, list[Part]]:
    """Return the parts of each group, in the order in which they run."""
    with_torch = [*WITH_TORCH, *naming_torch()]
    alone_with_torch = [path for path in ALONE if path.startswith(tuple(with_torch))]
    all_of_torch = {"GT_TEST_ALL": "1"}
    return {
        "test": [
            Part("rust", [*CARGO, "--workspace", "--exclude", "gt-sim"]),
            Part("simulation", [*CARGO, *CHECKED, "-p", "gt-sim", "-p", "gt-python"]),
            Part("rust threads", [*CARGO, *THREADS]),
            Part("python", pytest("tests", *without(ALONE))),
            Part("python alone", pytest(*ALONE, divided=False)),
            Part("server", pytest(*ON_SERVER), {"GT_TEST_SERVER": "local"}),
            Part("sharded", pytest(*SHARDED), {"GT_TEST_SHARDED": "1"}),
        ],
        "test-all": [
            Part("pytorch", pytest(*with_torch, *without(ALONE)), all_of_torch),
            Part("pytorch alone", pytest(*alone_with_torch, divided=False), all_of_torch),
            Part(
                "pytorch without C++",
                pytest(*CALLING),
                {**all_of_torch, "GT_TORCH_EXTENSION": "0"},
            ),
            Part("engine numpy", pytest(*ON_ENGINES), {"GT_BACKEND": "numpy"}),
            Part("engine pytorch", pytest(*ON_ENGINES), {"GT_BACKEND": "pytorch"}),
        ],
    }


def environment(part: Part) -> dict[str, str]:
    """Return the environment variables of a part."""
    # With two test processes on two processors, libraries that start one thread per processor would
    # run four threads.
    threads = {"OMP_NUM_THREADS": "1"} if DIVIDED[0] in part.command else {}
    return {**os.environ, **threads, **part.environment}
