"""Quotas of memory, and what happens where there is no room."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import gt
import numpy as np
import pytest
from processes import cluster, embedded_only, linux_only, run_gt, run_python, write_key

pytestmark = embedded_only

MB = 1_000_000


def policy(folder: Path, text: str) -> tuple[str, str]:
    (folder / "policy.yaml").write_text(text)
    return "--policy", str(folder / "policy.yaml")


def client(address: str, code: str, **environment: str):
    """Run a program on a server; give what it prints."""
    done = run_python(f"import gt, time\ngt.connect('{address}')\n{code}", **environment)
    assert done.returncode == 0, done
    return done.stdout


def spawn_client(address: str, code: str) -> subprocess.Popen:
    """Begin a program on a server."""
    return subprocess.Popen(
        [sys.executable, "-c", f"import gt, time\ngt.connect('{address}')\n{code}"]
    )


def from_file(folder: Path, code: str, **environment: str):
    """Run a program from a file, whose lines errors can show; give what it prints."""
    (folder / "program.py").write_text(code)
    started = f"import runpy\nrunpy.run_path({str(folder / 'program.py')!r})\n"
    done = run_python(started, **environment)
    assert done.returncode == 0, done
    return done.stdout


def test_what_would_pass_a_quota_fails_and_names_variables_and_lines(tmp_path):
    options = policy(tmp_path, "default: {memory: 100MB}\n")
    code = """import gt
gt.connect({address!r})
weights = gt.ones(10_000_000)
moments = weights + 1
other = gt.zeros(10_000_000)
small = gt.ones(3) + 1
try:
    other.sum().item()
except gt.WorkerError as error:
    print(error)
print(small.tolist(), moments[0].item())
del moments
print((weights + 2)[0].item())
"""
    with cluster(1, *options) as (address, _):
        said = from_file(tmp_path, code.format(address=address))
    assert "it needs 40.0 MB, and all without a user's key holds 80.0 MB of 100.0 MB" in said
    assert re.search(r"the largest are weights: float32 \(10000000,\) of .*:3, 40.0 MB,", said), (
        said
    )
    assert re.search(r"\n  moments: float32 \(10000000,\) of .*:4, 40.0 MB\n", said), said
    assert re.search(r"issued at .*:5\n\[2.0, 2.0, 2.0\] 2.0\n3.0\n$", said), said


def test_a_loop_that_lets_go_of_its_values_has_room(tmp_path):
    options = policy(tmp_path, "default: {memory: 100MB}\n")
    code = "for i in range(8):\n    x = gt.full((12_000_000,), float(i))\nprint(x[0].item())\n"
    with cluster(1, *options) as (address, _):
        assert client(address, code) == "7.0\n"


LOOPS = {
    # In each, the values of a turn go as those of the next are made.
    "rebound": (
        "x = gt.ones(60_000)\nfor i in range(n):\n"
        "    y = x * 2.0\n    z = y + 1\n    x = z * 0.5\n",
        4 * 240_000,
    ),
    "data": (
        "x = s = gt.zeros(60_000)\nfor i in range(n):\n"
        "    x = gt.tensor(np.full(60_000, i % 3, 'float32'))\n    s = s + x\n",
        4 * 240_000,
    ),
    "window": (
        "xs = [gt.ones(60_000)]\nfor i in range(n):\n    xs.append(xs[-1] * 0.5 + 1)\n"
        "    if len(xs) > 2: xs.pop(0)\nx = xs[0]\n",
        4 * 240_000,
    ),
}


@pytest.mark.parametrize("kind", LOOPS)
def test_a_loop_fits_into_a_quota_whatever_its_length(tmp_path, kind):
    """Hot or not, an iteration's frees make room as they do where the program has them."""
    code, most = LOOPS[kind]
    options = policy(tmp_path, f"default: {{memory: {most + 1000}}}\n")
    with cluster(1, *options) as (address, _):
        for turns in (3, 10, 60, 300):
            asked = f"import numpy as np\nn = {turns}\n{code}print(x[0].item() >= 0)\n"
            assert client(address, asked) == "True\n", turns


def test_many_small_tensors_count_for_a_quota(tmp_path):
    """A record of each is kept here and there, also of views, which have no memory of their own."""
    options = policy(tmp_path, "default: {memory: 10MB}\n")
    code = """
base = gt.arange(1000.0)
all = []
try:
    for i in range(30_000):
        all.append({made})
        if i % 500 == 0:
            all[-1].sum().item()
    all[-1].sum().item()
except gt.WorkerError as error:
    print(len(all) > 24_000, error)
del all
print((base + 1).sum().item())
"""
    with cluster(1, *options) as (address, _):
        for made in ("gt.ones(1)", "base[:500]", "gt.ones(0)"):
            said = client(address, code.replace("{made}", made))
            assert said.startswith("True "), said
            assert "MB of it for the records of tensors, which are many" in said, said
            assert said.endswith("\n500500.0\n"), said


def test_what_a_program_frees_late_makes_room(tmp_path):
    options = policy(tmp_path, "default: {memory: 100MB}\n")
    code = """
x = gt.ones(20_000_000)
y = gt.ones(10_000_000)
time.sleep(1.5)
print(gt.status().sessions[0]["waits_for"].split(" for")[0])
del x
print(y[0].item())
"""
    with cluster(1, *options) as (address, _):
        waits, value = client(address, code).splitlines()
    assert "of memory of all without a user's key" in waits and value == "1.0"


def test_what_sessions_hold_is_told_of_one_moment(tmp_path):
    """Two sessions take turns at a quota that has room for one of them: no sum is beyond it."""
    options = policy(tmp_path, "default: {memory: 1MB}\n")
    code = """
for i in range(300):
    x = gt.ones(200_000) + i
    try:
        x[0].item()
    except gt.WorkerError:
        pass  # The other has all, and does nothing at the moment.
    del x
"""
    with cluster(1, *options) as (address, _):
        with gt.Session(address):
            programs = [spawn_client(address, code) for _ in range(2)]
            while any(program.poll() is None for program in programs):
                told = [session["bytes"] for session in gt.status().sessions]
                assert sum(told) <= 1_000_000, told
    assert [program.returncode for program in programs] == [0, 0]


def test_a_users_sessions_share_a_quota_and_others_have_their_own(tmp_path):
    key = tmp_path / "key"
    write_key(key, run_gt("key").stdout)
    keyed = ("--key-file", str(key))
    ada, eve = (
        run_gt("key", "--user", name, "--of-file", str(key)).stdout.strip()
        for name in ("ada", "eve")
    )
    options = (*keyed, *policy(tmp_path, "users: {ada: {memory: 50MB}, eve: {memory: 50MB}}\n"))
    hold = "x = gt.ones(10_000_000)\nprint(x[0].item(), flush=True)\n"
    with cluster(1, *options, worker_options=keyed) as (address, _):
        first = gt.Session(address, key_file=str(_key(tmp_path, "ada", ada)))
        with first.use():
            kept = gt.ones(10_000_000)
            assert kept[0].item() == 1.0
            second = run_python(f"import gt\ngt.connect('{address}')\n{hold}", GT_KEY=ada)
            assert second.returncode == 1
            assert "user ada holds 40.0 MB of 50.0 MB" in second.stderr
            assert "\n  others hold ada#1 40.0 MB\n" in second.stderr
            assert client(address, hold, GT_KEY=eve) == "1.0\n"
            [own] = gt.status().sessions
            assert (own["bytes"], own["memory_quotas"]) == (40 * MB, [("user ada", 50 * MB)])
            del kept
        first.close()


def _key(folder: Path, name: str, key: str) -> Path:
    write_key(folder / name, key)
    return folder / name


def test_a_slice_that_is_left_of_a_large_tensor_is_copied_out(tmp_path):
    options = policy(tmp_path, "default: {memory: 100MB}\n")
    code = """
rows = [gt.ones(20_000_000)[10 * i : 10 * i + 10] for i in range(4)]
print(sum(row.sum().item() for row in rows))
print(gt.status().sessions[0]["bytes"] < 1000)
"""
    with cluster(1, *options) as (address, _):
        assert client(address, code) == "40.0\nTrue\n"


def test_who_waits_for_memory_is_told_because_of_whom(tmp_path):
    options = policy(tmp_path, "default: {memory: 100MB}\n")
    with cluster(1, *options) as (address, _):
        holder = gt.Session(address)
        with holder.use():
            kept = gt.ones(20_000_000)
            assert kept[0].item() == 1.0
            waiter = gt.Session(address)
            with waiter.use():
                more = gt.ones(10_000_000)
            # Its holder is at work, and may free something: so it is waited for.
            busy = gt.ones(1000, 1000)
            for _ in range(60):
                busy = busy @ busy * 1e-3
            with waiter.use():
                got = more[0]
                seen = set()
                until = time.monotonic() + 20
                while time.monotonic() < until and len(seen) < 2:
                    for session in gt.status().sessions:
                        if "of memory of all without a user's key" in session["waits_for"]:
                            seen |= {session["waits_for"].split(",")[0], *session["behind"]}
            assert len(seen) == 2, seen
            assert any(text.endswith("#1") for text in seen), seen
            del kept
            busy[0, 0].item()
        with waiter.use():
            assert got.item() == 1.0
            del got, more
        waiter.close()
        with holder.use():
            del busy
        holder.close()


SUMS = """
xs = [gt.full((2_500_000,), float(i)) + 0 for i in range(30)]
print(sum(x.sum().item() for x in xs))
total = gt.zeros(2_500_000)
for _ in range(3):
    for x in xs:
        total = total * 0.5 + x
print(total[0].item())
status = gt.status()
print(status.workers[0]["bytes"] <= 100_000_000, status.sessions[0]["spilled_bytes"] >= 200_000_000)
"""
TOLD = "1087500000.0\n56.0\nTrue True\n"


def test_what_there_is_no_room_for_is_written_away_and_comes_back(tmp_path):
    spill = tmp_path / "spill"
    options = ("--memory", "100MB", "--spill-dir", str(spill), "--spill-limit", "1GB")
    with cluster(1, worker_options=options) as (address, _):
        assert client(address, SUMS) == TOLD
        # The session is gone, and with it all that was written.
        until = time.monotonic() + 10
        while any(spill.glob("*/*.safetensors")) and time.monotonic() < until:
            time.sleep(0.05)
        assert [path.name for path in spill.glob("*/*.safetensors")] == []
    assert list(spill.iterdir()) == [], "the worker's folder goes with it"


def test_an_embedded_session_writes_away_what_there_is_no_room_for(tmp_path):
    spill = tmp_path / "spill"
    limits = {"GT_MEMORY": "100MB", "GT_SPILL_DIR": str(spill), "GT_SPILL_LIMIT": "1GB"}
    done = run_python("import gt\n" + SUMS, **limits)
    assert (done.stdout, done.stderr) == (TOLD, "")
    assert list(spill.iterdir()) == []


def test_repeated_elements_stay_where_they_are_and_room_is_made_to_read_them(tmp_path):
    """Written away, 40 MB that take one would be 400, which never came back."""
    code = """
import gt
y = gt.ones(1, 1_000_000).expand(10, 1_000_000) + 1
z = gt.ones(1, 1_000_000).expand(100, 1_000_000) + 1
others = [gt.full((5_000_000,), float(i)) for i in range(6)]
print(z.sum().item(), [other[0].item() for other in others] == [0, 1, 2, 3, 4, 5])
print(y.numpy().shape, z.sum().item(), gt.status().workers[0]["spilled_bytes"] < 150_000_000)
"""
    limits = {"GT_MEMORY": "100MB", "GT_SPILL_DIR": str(tmp_path), "GT_SPILL_LIMIT": "1GB"}
    done = run_python(code, **limits)
    assert done.stdout == "200000000.0 True\n(10, 1000000) 200000000.0 True\n", done


def test_training_where_there_is_no_room_gives_the_same_bits(tmp_path):
    code = """
import gt
from gt import nn
gt.manual_seed(0)
model = nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(300, 300), nn.ReLU())])
optimizer = gt.optim.Adam(model.parameters(), lr=1e-3)
x, y = gt.randn(64, 300), gt.randn(64, 300)
for step in range(30):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
print(loss.item(), [p.sum().item() for p in model.parameters()])
print(gt.status().workers[0]["spilled_bytes"] > 0)
"""
    limits = {"GT_MEMORY": "4MB", "GT_SPILL_DIR": str(tmp_path), "GT_SPILL_LIMIT": "100MB"}
    tight, free = run_python(code, **limits), run_python(code)
    assert tight.returncode == 0, tight
    assert tight.stdout.splitlines()[0] == free.stdout.splitlines()[0]
    assert tight.stdout.splitlines()[1] == "True"


def test_without_room_an_operation_fails_and_the_session_goes_on(tmp_path):
    code = """import gt
xs = [gt.ones(10_000_000) for _ in range(2)]
print(xs[0][0].item())
try:
    gt.ones(10_000_000)[0].item()
except gt.WorkerError as error:
    print(error)
xs.pop()
print(gt.ones(10_000_000)[0].item())
"""
    said = from_file(tmp_path, code, GT_MEMORY="100MB")
    assert "it needs 40.0 MB, and 80.0 MB of the worker's 100.0 MB are held" in said
    assert "the largest are xs: float32" in said
    assert said.endswith("\n1.0\n")


def test_a_disk_that_cannot_be_written_is_told_and_loses_nothing(tmp_path):
    if os.geteuid() == 0 and not Path("/dev/full").exists():
        pytest.skip("SKIPPED: nothing here cannot be written")
    code = "import gt\nx = gt.ones(20_000_000)\ny = gt.ones(20_000_000)\nprint(x[0].item())\n"
    file = tmp_path / "file"
    file.write_text("no folder")
    done = run_python(code, GT_MEMORY="100MB", GT_SPILL_DIR=str(file))
    assert done.stdout == "1.0\n", done
    assert f"nothing can be written away to {file}" in done.stderr


def test_sizes_that_are_none_are_told(tmp_path):
    said = run_gt("worker", "--memory", "lots")
    assert said.returncode == 2 and "the size is 'lots', expected one as 16GB" in said.stderr
    done = run_python("import gt\nprint(gt.ones(2).sum().item())", GT_MEMORY="lots")
    assert done.stdout == "2.0\n"
    assert "GT_MEMORY is 'lots', expected a size, as 16GB, 512MiB" in done.stderr
    path = tmp_path / "policy.yaml"
    path.write_text("users:\n  ada: {memory: lots}\n")
    said = run_gt("server", "--policy", str(path))
    assert f"{path}:2:17: 'users.ada.memory' is 'lots', expected a size" in said.stderr


def test_a_quota_below_what_is_held_takes_nothing(tmp_path):
    import signal

    options = policy(tmp_path, "default: {memory: 100MB}\n")
    with cluster(1, *options) as (address, (server, *_)):
        with gt.Session(address):
            kept = gt.ones(20_000_000)
            assert kept[0].item() == 1.0
            policy(tmp_path, "default: {memory: 50MB}\n")
            server.send_signal(signal.SIGHUP)
            until = time.monotonic() + 10
            while gt.status().sessions[0]["memory_quotas"][0][1] != 50 * MB:
                assert time.monotonic() < until
                time.sleep(0.05)
            assert kept[1].item() == 1.0, "nothing is taken away"
            with pytest.raises(gt.WorkerError, match="holds 80.0 MB of 50.0 MB"):
                gt.ones(10)[0].item()
            assert np.asarray(kept).sum() == 2e7
            del kept
            assert gt.ones(10).sum().item() == 10.0
        server.terminate()
        told = server.stderr.read()
    assert (
        "all without a user's key holds 80000000 bytes on worker w0, and may hold 50000000" in told
    )


def test_a_fork_leaves_what_was_written_away_where_it_is(tmp_path):
    code = """
import gt, os
xs = [gt.full((2_500_000,), float(i)) + 0 for i in range(20)]
print(sum(x.sum().item() for x in xs), gt.status().workers[0]["spilled_bytes"] > 0, flush=True)
child = os.fork()
if child == 0:
    more = [x + 1 for x in xs]
    print(sum(x.sum().item() for x in more), flush=True)
    del xs, more
    raise SystemExit(0)
assert os.waitpid(child, 0)[1] == 0
print(sum(x.sum().item() for x in xs))
"""
    limits = {"GT_MEMORY": "100MB", "GT_SPILL_DIR": str(tmp_path), "GT_SPILL_LIMIT": "1GB"}
    done = run_python(code, **limits)
    assert done.stdout == "475000000.0 True\n525000000.0\n475000000.0\n", done
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_of_what_is_written_away_is_whole(tmp_path):
    code = """
import gt, sys
xs = {f"x{i}": gt.full((2_500_000,), float(i)) + 0 for i in range(20)}
print(sum(x.max().item() for x in xs.values()))
gt.checkpoint.save(sys.argv[1], xs).wait()
loaded = gt.checkpoint.load(sys.argv[1])[0]
print(sum(loaded[name].sum().item() for name in xs))
"""
    limits = {
        "GT_MEMORY": "100MB",
        "GT_SPILL_DIR": str(tmp_path / "spill"),
        "GT_SPILL_LIMIT": "1GB",
    }
    done = run_python(code, str(tmp_path / "checkpoint"), **limits)
    assert (done.returncode, done.stdout) == (0, "190.0\n475000000.0\n"), done


@pytest.mark.parametrize("engine", ["numpy", "pytorch", "jax"])
def test_quotas_are_exact_on_engines_in_python(tmp_path, engine):
    """What is reshaped by a copy needs memory; views do not, where the engine makes any."""
    pytest.importorskip(
        {"pytorch": "torch"}.get(engine, engine), reason="make test-all installs it"
    )
    code = """if True:
        x = gt.ones(3000, 5000)
        turned = x.T
        print(turned[0, 0].item())
        try:
            print(turned.reshape(-1)[0].item())
        except gt.WorkerError as error:
            print("refused" if "60.0 MB" in str(error) else error)
    """
    options = policy(tmp_path, "default: {memory: 100MB}\n")
    with cluster(1, *options, worker_options=("--backend", engine)) as (address, _):
        done = run_python(f"import gt, time\ngt.connect('{address}')\n{code}")
    if engine == "jax":
        assert "it needs 60.0 MB" in done.stderr, done
    else:
        assert done.stdout.splitlines() == ["1.0", "refused"], done


LARGE = """
x = gt.ones(1).expand(2**29)
print(x.sum().item())
calls = {
    "argmax": lambda: x.argmax(),
    "std": lambda: x.std(),
    "sort": lambda: x.sort()[0],
    "cumsum": lambda: x.cumsum(0),
    "matmul": lambda: x.reshape(2, -1) @ x.reshape(-1, 2),
    "index": lambda: x[gt.arange(2)],
}
for name, call in calls.items():
    try:
        call().sum().item()
        print(name)
    except gt.WorkerError:
        print("refused")
print(gt.ones(3).sum().item())
"""


@linux_only
def test_what_an_operation_needs_beyond_its_budget_fails_it_and_not_the_worker(tmp_path):
    with cluster(1, worker_options=("--memory", "100MB")) as (address, (_, worker)):
        said = client(address, LARGE).splitlines()
        most = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{worker.pid}/status").read_text())[1]
    made = ["argmax", "std", "refused", "refused", "matmul", "refused"]
    assert said == ["536870912.0", *made, "3.0"]
    assert int(most) < 250_000, "100 MB, the workspace, and the process itself"
