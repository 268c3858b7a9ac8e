"""How far a program may be ahead of its workers: by a time, not by a number of instructions."""

import textwrap

import pytest
from processes import cluster, embedded_only, one_engine_only, run_python, unsharded_only

pytestmark = [embedded_only, unsharded_only, one_engine_only]

#: Whoever it waits for is stopped: it gets no further than a time's worth of work.
ISSUES = """
import gt, os, signal, sys, threading
address, worker = sys.argv[1], int(sys.argv[2])
gt.connect(address)
x, w = gt.randn(600, 600), gt.randn(600, 600) / 25
for _ in range(300):
    x = x @ w
x.sum().item()
issued = 0
os.kill(worker, signal.SIGSTOP)

def issue():
    global issued, x
    for _ in range(8000):
        x = x @ w
        issued += 1

thread = threading.Thread(target=issue)
thread.start()
seen = -1
while seen != issued:
    seen = issued
    thread.join(1.5)
print(issued < 8000)
os.kill(worker, signal.SIGCONT)
for _ in range(600):
    thread.join(0.1)
    if issued > seen:
        break
print(issued > seen)
os._exit(0)
"""


def test_a_program_waits_where_its_worker_does_not_get_on():
    with cluster(1) as (address, processes):
        done = run_python(ISSUES, address, str(processes[1].pid), timeout=120)
    assert (done.returncode, done.stdout) == (0, "True\nTrue\n"), done


#: Each tensor takes a third of the memory, and more work than may be in flight.
FULL = """
import gt, sys
if sys.argv[1:]:
    gt.connect(sys.argv[1])
held = []
try:
    for _ in range(8):
        held.append(gt.ones(8 << 20))
    print(held[-1].sum().item())
except gt.WorkerError as error:
    print("needs 33.6 MB" in str(error))
del held
print(gt.ones(3).sum().item())
"""


@pytest.mark.parametrize("is_remote", [False, True])
def test_a_program_that_waits_for_room_is_told_that_there_is_no_memory(is_remote):
    limits = {"GT_RUN_AHEAD": "0.000001", "GT_MEMORY": "100MB"}
    if not is_remote:
        done = run_python(FULL, **limits)
    else:
        with cluster(1, worker_options=("--memory", "100MB")) as (address, _):
            done = run_python(FULL, address, **limits)
    assert (done.returncode, done.stdout) == (0, "True\n3.0\n"), done


def test_a_wait_in_a_notebook_says_what_it_waits_for():
    code = """
        import io, os, signal, sys, threading, types
        sys.modules["ipykernel"] = types.ModuleType("ipykernel")
        sys.stderr = io.StringIO()
        import gt
        address, worker = sys.argv[1], int(sys.argv[2])
        gt.connect(address)
        x = gt.ones(3)
        x.sum().item()
        os.kill(worker, signal.SIGSTOP)
        go_on = threading.Timer(4, os.kill, (worker, signal.SIGCONT))
        go_on.start()
        (x + 1).sum().item()
        print("gt: waiting for" in sys.stderr.getvalue())
    """
    with cluster(1) as (address, processes):
        done = run_python(textwrap.dedent(code), address, str(processes[1].pid))
    assert (done.returncode, done.stdout) == (0, "True\n"), done
