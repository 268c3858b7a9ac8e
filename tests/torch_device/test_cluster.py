"""PyTorch programs on a server: several at once, and with a worker that dies."""

import json
import pathlib
import subprocess
import sys

import pytest
from processes import cluster, embedded_only

pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
pytest.importorskip("transformers")
pytest.importorskip("torchvision")
from models_of_torch import NAMES  # noqa: E402

pytestmark = embedded_only
PROGRAMS = pathlib.Path(__file__).parent / "models_of_torch.py"


def start(names, *options):
    """Start programs in a new process."""
    return subprocess.Popen(
        [sys.executable, PROGRAMS, *options, *names],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    """Return the results of the programs, and their stderr."""
    said, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors
    return [json.loads(line) for line in said.splitlines() if line != "half"], errors


@pytest.fixture(scope="module")
def expected():
    """The results of each program alone, by name."""
    return dict(zip(NAMES, finish(start(NAMES))[0], strict=True))


def test_several_programs_at_once(expected):
    """Results are bitwise those of each program alone."""
    shares = NAMES[::3], NAMES[1::3], NAMES[2::3]
    with cluster(2) as (address, _):
        running = [start(names, "--server", address) for names in shares]
        for names, process in zip(shares, running, strict=True):
            assert finish(process)[0] == [expected[name] for name in names]


@pytest.mark.parametrize("name", ["Qwen3ForCausalLM", "MixtralForCausalLM", "resnet", "lstm"])
def test_a_worker_dies(expected, name):
    """A worker dies in the middle of a step: the results are the same, and a warning is printed."""
    with cluster(2) as (address, processes):
        program = start([name], "--server", address, "--pause")
        assert program.stdout.readline() == "half\n"
        processes[1].kill()
        found, errors = finish(program)
    assert found == [expected[name]]
    assert "worker" in errors
