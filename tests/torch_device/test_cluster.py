"""PyTorch programs on a server with workers: alone, several at once, and while a worker dies."""

import subprocess
import sys

import pytest
from processes import cluster, embedded_only

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
pytestmark = embedded_only

PROGRAM = """
import sys
import gt, gt.torch, torch
if len(sys.argv) > 1:
    gt.connect(sys.argv[1])
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 4))
inputs, labels = torch.randn(16, 8), torch.randint(0, 4, (16,))
model, inputs, labels = model.to("cluster"), inputs.to("cluster"), labels.to("cluster")
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(40):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    if step == 20:
        print("half", loss.item(), flush=True)
        if len(sys.argv) > 2:
            sys.stdin.readline()
print(loss.item(), sum(p.double().sum().item() for p in model.parameters()))
"""


def start(*args):
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process, answer=""):
    said, errors = process.communicate(answer, timeout=100)
    assert process.returncode == 0, errors
    return said.splitlines()[-1], errors


@pytest.fixture(scope="module")
def expected():
    return finish(start())[0]


def test_several_programs_at_once(expected):
    with cluster(2) as (address, _):
        programs = [start(address) for _ in range(3)]
        assert [finish(program)[0] for program in programs] == [expected] * 3


def test_a_worker_dies(expected):
    """Nothing is lost, and the program sees none of it but a line."""
    with cluster(2) as (address, processes):
        program = start(address, "wait")
        assert program.stdout.readline().startswith("half")
        processes[1].kill()
        said, errors = finish(program, "\n")
    assert said == expected
    assert "worker" in errors
