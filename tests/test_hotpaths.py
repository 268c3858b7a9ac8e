"""Hot paths: what repeats runs as one, and gives the same numbers."""

import os

import gt
import numpy as np
import pytest
from processes import cluster, embedded_only, run_python

TRAIN = """
import gt, numpy as np
from gt import nn

gt.manual_seed(0)
rng = np.random.default_rng(0)
data = gt.from_numpy(rng.normal(size=(96, 10)).astype("float32"))
target = gt.tensor(rng.integers(0, 3, 96), dtype="int64")
model = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Dropout(0.1), nn.Linear(16, 3))
optimizer = gt.optim.AdamW(model.parameters(), lr=0.01)
losses = []
for step in range({steps}):
    start = 32 * (step % 3)
    x, y = data[start : start + 32], target[start : start + 32]
    for group in optimizer.param_groups:
        group["lr"] = 0.01 / (1 + step)
    loss = nn.cross_entropy_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if step % 7 == 6:
        with gt.no_grad():
            losses.append(model(data).sum().item())
"""

SHOW = "print(np.array2string(np.array(losses), separator=',', max_line_width=10**6))\n"


def losses(steps=40, **environment):
    done = run_python(TRAIN.format(steps=steps) + SHOW, **environment)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return np.array(eval(done.stdout))


def test_templates_change_no_number():
    cold = losses(GT_AUTO_COMPILE="0")
    np.testing.assert_allclose(losses(), cold, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(losses(GT_COMPILE="1"), cold, rtol=1e-5, atol=1e-5)
    batched = losses(GT_AUTO_COMPILE="0", GT_WORKER_BATCH_SIZE="7")
    np.testing.assert_allclose(batched, cold, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("engine", ["numpy", "pytorch", "jax"])
def test_every_engine_trains_alike(engine):
    if engine != "numpy":
        pytest.importorskip("torch" if engine == "pytorch" else engine)
    native = losses(15)
    np.testing.assert_allclose(losses(15, GT_BACKEND=engine), native, rtol=1e-4, atol=1e-4)


def test_compiled_engines_train_alike():
    pytest.importorskip("jax")
    native = losses(15)
    done = run_python(
        TRAIN.format(steps=15) + SHOW, GT_BACKEND="jax", GT_COMPILE="1", GT_DEBUG_COMPILE="1"
    )
    assert "gt: compiled" in done.stderr and "warning" not in done.stderr, done.stderr
    np.testing.assert_allclose(np.array(eval(done.stdout)), native, rtol=1e-4, atol=1e-4)


def test_the_statistics_tell():
    # Others do not compile unasked on a processor: there is nothing to check.
    compiles = os.environ.get("GT_BACKEND", "native") == "native"
    script = (
        "stats = list(gt.debug.get_worker_stats().values())[0]\n"
        "hot, compiled = stats['hotpath'], stats['compilation']\n"
        "assert set(hot) == {'total_instructions', 'hot_instructions', 'unique_sequences',\n"
        "    'hot_sequences', 'hot_threshold', 'top_sequences'}, hot\n"
        "assert hot['hot_instructions'] > 0.8 * hot['total_instructions'], hot\n"
        "assert hot['hot_threshold'] == 3 and hot['hot_sequences'] >= 1\n"
        "compiled_operations = stats['operations']['compiled']\n"
        f"assert {int(compiles)} <= compiled_operations <= stats['operations']['total']\n"
        "total, eager = stats['operations']['total'], stats['operations']['eager']\n"
        "assert total == stats['operations']['compiled'] + eager\n"
        "top = hot['top_sequences'][0]\n"
        "assert top['repetitions'] > 5 and top['length'] > 20, top\n"
        "assert compiled['cache_size'] >= 1 and compiled['cache_hits'] > 20\n"
        "assert compiled['failures'] == 0, compiled\n"
        "assert stats['engine'] in ('jax', 'pytorch') or compiled['compiled'] == []\n"
        f"assert compiled['checked'] >= {int(compiles)}, compiled\n"
        "gt.debug.print_worker_stats()\n"
    )
    done = run_python(TRAIN.format(steps=120) + script)
    assert done.returncode == 0, done.stderr
    for word in ("hot paths:", "repetitions", "hits", "misses", "to compile", "saved"):
        assert word in done.stdout


@pytest.mark.parametrize("backend", ["native", "pytorch", "jax"])
def test_compiled_code_can_be_read(backend, tmp_path):
    if backend != "native":
        pytest.importorskip("torch" if backend == "pytorch" else "jax")
    environment = {
        "GT_BACKEND": backend,
        "GT_COMPILE": "1",
        "GT_DEBUG_COMPILE": "1",
        "GT_SAVE_COMPILED_CODE": str(tmp_path / "code"),
    }
    done = run_python(
        "import gt\n"
        "x = gt.ones(64, 64)\n"
        "for _ in range(60):\n"
        "    x = ((x * 0.5 + 1).tanh() @ x).sigmoid()\n"
        "x.sum().item()\n",
        **environment,
    )
    assert done.returncode == 0, done.stderr
    assert "gt: compiled" in done.stderr and "operations (mul" in done.stderr, done.stderr
    files = list((tmp_path / "code").iterdir())
    assert files and all(file.name.startswith(f"{backend}-") for file in files)
    text = "".join(file.read_text() for file in files)
    assert "= tanh(%" in text and "outputs: %" in text
    assert {"native": "tile by tile", "pytorch": "def call(", "jax": "HloModule"}[backend] in text

    # A folder that cannot be made is told, and changes nothing else.
    environment["GT_SAVE_COMPILED_CODE"] = os.devnull
    done = run_python(TRAIN.format(steps=9) + SHOW, **environment)
    assert done.returncode == 0 and "GT_SAVE_COMPILED_CODE is to name a folder" in done.stderr


@pytest.mark.parametrize("backend", ["native", "numpy", "pytorch", "jax"])
def test_a_program_may_end_while_it_is_compiled(backend):
    if backend in ("pytorch", "jax"):
        pytest.importorskip("torch" if backend == "pytorch" else "jax")
    program = (
        "import gt\n"
        "for number in range(20):\n"
        "    for step in range(6): x = gt.ones(4, 4 + number).exp().sum(-1).tanh()\n"
        "    x.sum().item()\n"
    )
    done = run_python(program, GT_BACKEND=backend, GT_AUTO_COMPILE="1")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("GT_AUTO_COMPILE", "maybe", "0 or 1"),
        ("GT_COMPILE", "-1", "0 or 1"),
        ("GT_CHECK_NAN", "si", "0 or 1"),
        ("GT_DEBUG_COMPILE", "2", "0 or 1"),
        ("GT_HOTPATH_THRESHOLD", "abc", "a whole number from 1 on"),
        ("GT_WORKER_BATCH_SIZE", "0", "a whole number from 1 on"),
    ],
)
def test_a_variable_that_cannot_be_understood_is_told(name, value, expected):
    program = "import gt\nprint(gt.ones(2).sum().item())\n"
    done = run_python(program, **{"GT_BACKEND": "native", name: value})
    said = f"gt: warning: {name} is '{value}', expected {expected}: it is ignored\n"
    assert (done.stdout, done.stderr) == ("2.0\n", said)


def test_a_scope_is_compiled_however_far_back_its_tensors_are():
    program = (
        "import gt\n"
        "gt.register_config('hot', gt.SignalConfig(compile=True))\n"
        "x, w = gt.ones(4, 4), gt.ones(4, 4)\n"
        "for step in range(3):\n"
        "    with gt.signal.context('hot'):\n"
        "        y = ((x @ w).relu() * 2 + 1).sum()\n"
        "    y.item()\n"
        "print(list(gt.debug.get_worker_stats().values())[0]['hotpath']['hot_instructions'])\n"
    )
    assert run_python(program).stdout == "10\n"


def test_the_threshold_and_the_switch():
    count = (
        "stats = list(gt.debug.get_worker_stats().values())[0]\n"
        "print(stats['hotpath']['hot_instructions'] > 0)\n"
    )
    program = TRAIN.format(steps=9) + count
    assert run_python(program).stdout == "True\n"
    assert run_python(program, GT_AUTO_COMPILE="0").stdout == "False\n"
    assert run_python(program, GT_HOTPATH_THRESHOLD="50").stdout == "False\n"


def test_the_log_shows_hot_paths(tmp_path):
    log = tmp_path / "gt.log"
    program = (
        "import gt\n"
        "x = gt.ones(4)\n"
        "for i in range(60):\n"
        "    x = (x * 0.5).exp()\n"
        "    x = x + 1\n"
        "x.sum().item()\n"
    )
    assert run_python(program, GT_INSTRUCTION_LOG=str(log)).returncode == 0
    lines = log.read_text().splitlines()
    parts = [[part.strip() for part in line.split("|")] for line in lines]
    events = [(part[2], part[4]) for part in parts]
    starts = [at for at, event in enumerate(events) if event[1] == "WorkerHotPathStart"]
    assert len(starts) >= 3
    assert any(event == ("RECV", "HotPathStart") for event in events)
    for start in starts:
        # The operations that an iteration stands for are between its marks.
        end = next(at for at in range(start, len(events)) if events[at][1] == "WorkerHotPathEnd")
        inside = {event[1] for event in events[start + 1 : end]}
        assert inside <= {"WorkerUnaryOp", "WorkerBinaryOp", "WorkerFreeTensor"} and inside
    # Every operation is there once on its way to the worker.
    sent = {("WORKER_SEND", "WorkerUnaryOp"), ("WORKER_SEND", "WorkerBinaryOp")}
    assert sum(event in sent for event in events) == 180


def test_a_scope_that_is_to_be_compiled_is_one_from_its_second_time_on():
    program = (
        "import gt\n"
        "gt.register_config('hot', gt.SignalConfig(compile=True))\n"
        "x = gt.ones(8)\n"
        "for round in range(4):\n"
        "    with gt.signal.context('hot'):\n"
        "        x = ((x * 2).tanh() + round).exp()\n"
        "    if round == 1: x = x / 3\n"
        "print(round, x.sum().item() > 0)\n"
        "stats = list(gt.debug.get_worker_stats().values())[0]\n"
        "print(stats['hotpath']['hot_instructions'], stats['hotpath']['hot_sequences'])\n"
    )
    assert run_python(program).stdout == "3 True\n12 1\n"


def test_an_error_in_a_hot_path_names_its_line():
    program = (
        "import gt\n"
        "x, at = gt.arange(8), gt.tensor([1, 2], dtype='int64')\n"
        "for step in range(40):\n"
        "    at = at + (8 if step == 30 else 0)\n"
        "    y = x * 2\n"
        "    z = y.index_select(0, at)\n"
        "    if step == 29: good = z + 0\n"
        "print(good.tolist())\n"
        "try: print(z.tolist())\n"
        "except gt.WorkerError as error: print(error)\n"
        "print((gt.ones(2) + 1).tolist())\n"
    )
    done = run_python(program)
    first, *error, last = done.stdout.splitlines()
    assert first == "[2, 4]" and last == "[2.0, 2.0]"
    assert "index 9 is out of range for an axis of length 8" in error[0]
    assert "index_select" in error[0] and any("<string>:7" in line for line in error), done.stdout


def test_nan_is_found_where_it_begins():
    program = (
        "import gt\n"
        "x = gt.tensor([1.0, -1.0])\n"
        "y = x.log()\n"
        "z = (y * 2).sum()\n"
        "try: z.item()\n"
        "except gt.WorkerError as error: print(error)\n"
        "print((gt.tensor([float('nan')]) + 1).isnan().item())\n"
    )
    done = run_python(program, GT_CHECK_NAN="1")
    text = done.stdout
    assert "log of float32 (2,)" in text and "has a NaN, first as element 1 of 2" in text, done
    assert "<string>:4" in text and text.endswith("True\n")
    assert run_python("import gt; print(gt.tensor([-1.0]).log().isnan().item())").stdout == "True\n"


@embedded_only
def test_two_clients_are_hot_side_by_side():
    with cluster(workers=1) as (address, _):
        program = f"import gt\ngt.connect('{address}')\n" + TRAIN.format(steps=20) + SHOW
        alone = losses(20)
        import concurrent.futures as futures

        with futures.ThreadPoolExecutor(2) as pool:
            done = list(pool.map(run_python, [program, program]))
        for each in done:
            np.testing.assert_allclose(np.array(eval(each.stdout)), alone, rtol=1e-5, atol=1e-5)


def test_a_loop_that_is_interrupted_goes_on():
    x = gt.ones(5)
    seen = []
    for step in range(50):
        x = x * 1.5
        x = x - x.mean()
        x = x + 1
        if step in (20, 33):
            seen.append(x.tolist())
        if step == 25:
            kept = x
    assert np.allclose(x.tolist(), 1) and np.allclose(kept.tolist(), 1) and len(seen) == 2


def test_memory_does_not_grow_in_a_hot_loop():
    if os.environ.get("GT_TEST_SHARDED"):
        pytest.skip("counts the tensors of one worker")
    x = gt.ones(100)
    held = []
    for step in range(200):
        x = (x * 0.5).tanh() + 1
        if step % 50 == 49:
            x.sum().item()
            stats = gt.debug.get_worker_stats().values()
            held.append(sum(worker["memory"]["tensors"] for worker in stats))
    assert max(held[1:]) <= held[0] + 1, held
