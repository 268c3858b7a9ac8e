"""Tensors for all: programs publish tensors, and others read them without a copy."""

import signal
import subprocess

import gt
import pytest
from processes import (
    cluster,
    embedded_only,
    one_engine_only,
    program_command,
    run_gt,
    run_program,
    run_python,
    unsharded_only,
    write_key,
)
from training import start_server

# These tests start their own servers.
pytestmark = [embedded_only, unsharded_only, one_engine_only]

#: Publishes the base that tests/programs/publications/adapter.py has a copy of.
PUBLISH = (
    "import sys, os, gt\n"
    "gt.connect(sys.argv[1])\n"
    "gt.manual_seed(5)\n"
    "model = gt.nn.Sequential(gt.nn.Linear(16, 32), gt.nn.Tanh(), gt.nn.Linear(32, 16))\n"
    "print(gt.publish('base', model, to='all'))\n"
)


@pytest.fixture(scope="module")
def served():
    with cluster(2) as (address, _):
        yield address


@pytest.fixture(autouse=True)
def own_session():
    """End the sessions of a test; the next one starts workers in this process again."""
    yield
    gt.disconnect()
    gt.workers(1)


def bytes_on_workers() -> int:
    """Return the bytes that tensors and what is published take."""
    gt.synchronize()
    return sum(worker["bytes"] + worker["snapshot_bytes"] for worker in gt.status().workers)


def adapted(address: str, base: str, *more: object) -> str:
    """Return the losses of an adapter on a base."""
    done = run_program("publications/adapter", address, base, 24, *more)
    assert done.returncode == 0, done
    return done.stdout


def test_readers_have_the_values_of_the_call(served):
    gt.connect(served)
    x = gt.arange(6.0).reshape(2, 3)
    value = {"x": x, "again": x, "row": x[1], "turned": x.T, "n": [1, "a", (2.5, None)]}
    assert gt.publish("values", value, description="for a test") == "values@1"
    x += 100
    assert gt.publish("values", {"x": x}) == "values@2"
    del x, value
    gt.disconnect()
    gt.connect(served)
    first, second = gt.shared("values@1"), gt.shared("values")
    assert first["x"] is first["again"] and first["n"] == [1, "a", (2.5, None)]
    assert first["x"].tolist() == [[0, 1, 2], [3, 4, 5]] and first["row"].tolist() == [3, 4, 5]
    assert (first["turned"] + 1).tolist() == [[1, 4], [2, 5], [3, 6]]
    assert second["x"].tolist() == [[100, 101, 102], [103, 104, 105]]
    one, two = [of for of in gt.published() if of.name == "values"]
    assert (one.version, one.tensors, one.readers, one.description) == (1, 3, 1, "for a test")
    assert (two.version, two.bytes, two.to, two.visible) == (2, 24, "team", True)
    assert gt.unpublish("values") == 2


def test_tied_parameters_are_published_once(served):
    gt.connect(served)
    model = gt.nn.Sequential(gt.nn.Linear(3, 3, bias=False), gt.nn.Linear(3, 3, bias=False))
    model[1].weight = model[0].weight
    gt.publish("tied", model)
    (of,) = [of for of in gt.published() if of.name == "tied"]
    assert (of.tensors, of.bytes) == (1, 36)
    reader = gt.nn.Sequential(gt.nn.Linear(3, 3, bias=False), gt.nn.Linear(3, 3, bias=False))
    gt.shared("tied", into=reader)
    assert reader[0].weight.tolist() == reader[1].weight.tolist() == model[0].weight.tolist()
    assert not any(parameter.requires_grad for parameter in reader.parameters())


def test_what_has_a_state_can_be_published(served):
    gt.connect(served)
    model = gt.nn.Linear(3, 2)
    optimizer = gt.optim.Adam(model.parameters(), lr=0.5)
    model(gt.ones(1, 3)).sum().backward()
    optimizer.step()
    gt.publish("optimizer", optimizer)
    state = gt.shared("optimizer")
    again = gt.optim.Adam(gt.nn.Linear(3, 2).parameters())
    again.load_state_dict(state)
    assert again.param_groups[0]["lr"] == 0.5
    assert gt.unpublish("optimizer") == 1


def test_shared_tensors_are_read_only_and_gradients_flow_through_them(served):
    gt.connect(served)
    gt.publish("weights", {"w": gt.arange(6.0).reshape(2, 3)})
    w = gt.shared("weights")["w"]
    for change in (
        lambda: w.add_(1),
        lambda: w[0].zero_(),
        lambda: w.__setitem__(0, 1.0),
        lambda: w.t().mul_(2),
        lambda: w.data.add_(1),
    ):
        with pytest.raises(RuntimeError, match="shared by gt.shared, and cannot be changed"):
            change()
    x = gt.ones(1, 2, requires_grad=True)
    (x @ w).sum().backward()
    assert x.grad.tolist() == [[3, 12]] and not w.requires_grad
    own = w.clone()
    own += 1
    assert own.sum().item() == 21 and w.sum().item() == 15


def test_readers_take_no_memory():
    with cluster(1) as (address, _):
        gt.connect(address)
        gt.publish("large", {"x": gt.ones(1000, 250)})
        gt.shared("large")
        # Without the publisher's own tensor.
        gt.disconnect()
        gt.connect(address)
        x = gt.shared("large")["x"]
        before = bytes_on_workers()
        assert 1_000_000 <= before < 1_100_000
        readers = [gt.Session(address) for _ in range(5)]
        sums = []
        for reader in readers:
            with reader:
                held = gt.shared("large")["x"]
                sums.append((held.sum().item(), held.T[3].sum().item()))
        assert sums == [(250_000, 1000)] * 5
        assert bytes_on_workers() < before + 100_000
        assert gt.published()[0].readers >= 1
        for reader in readers:
            reader.close()
        assert x.sum().item() == 250_000


def test_work_on_a_shared_base_equals_work_on_an_own_one(served):
    assert run_python(PUBLISH, served).stdout == "base@1\n", "its program ends at once"
    expected = adapted(served, "own")
    programs = [
        subprocess.Popen(
            program_command("publications/adapter", served, "base", 24),
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    assert [program.communicate(timeout=120)[0] for program in programs] == [expected] * 4


def test_it_stays_when_publisher_worker_and_server_die(tmp_path):
    with cluster(3, "--state", str(tmp_path / "state")) as (address, processes):
        killed = run_python(PUBLISH + "gt.shared('base')\nos.kill(os.getpid(), 9)", address)
        assert killed.returncode == -signal.SIGKILL
        expected = adapted(address, "own")
        gates = [tmp_path / "gate0", tmp_path / "gate1"]
        programs = []
        for gate in gates:
            command = program_command("publications/adapter", address, "base", 24, gate)
            program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            assert program.stdout.readline() == "begins\n"
            programs.append(program)
        worker = processes.pop()
        worker.kill()
        worker.communicate()
        gates[0].touch()
        losses = expected.splitlines()[1]
        assert programs[0].communicate(timeout=120)[0].strip() == losses
        server = processes.pop(0)
        server.kill()
        server.communicate()
        processes.insert(0, start_server(address, tmp_path / "state"))
        gates[1].touch()
        assert programs[1].communicate(timeout=120)[0].strip() == losses
        # One that begins now finds it.
        assert adapted(address, "base") == expected


def test_readers_of_what_was_sharded_have_other_numbers_of_slots(served):
    gt.connect(served)
    config = gt.SignalConfig(shard=gt.ShardConfig(axis=0))
    gt.register_config("rows", config)
    with gt.signal.context("rows"):
        x = gt.arange(40.0).reshape(8, 5)
    gt.publish("rows", {"x": x, "sum": x.sum(0)})
    expected = (x.tolist(), x.sum(0).tolist(), (x @ x.T).tolist())
    for slots in (1, 2, 3):
        with gt.Session(served):
            gt.rescale(slots)
            shared = gt.shared("rows")
            y = shared["x"]
            assert (y.tolist(), shared["sum"].tolist(), (y @ y.T).tolist()) == expected, slots


def test_what_is_withdrawn_stays_for_its_readers(served):
    gt.connect(served)
    gt.publish("gone", {"x": gt.ones(3)})
    x = gt.shared("gone")["x"]
    assert gt.unpublish("gone@1") == 1
    with pytest.raises(RuntimeError, match="there is no publication 'gone'"):
        gt.shared("gone")
    with pytest.raises(RuntimeError, match="there is no publication 'gone'"):
        gt.unpublish("gone")
    assert (x + 1).tolist() == [2, 2, 2]
    assert [of.withdrawn for of in gt.published() if of.name == "gone"] == [True]
    del x
    gt.synchronize()
    gt.publish("other", gt.ones(1))
    gt.unpublish("other")
    assert not [of for of in gt.published() if of.name == "gone"]


def test_wrong_names_and_values(served):
    gt.connect(served)
    gt.publish("right", gt.ones(2))
    for name, text in (
        ("", "expected letters and digits"),
        ("a/b", "the character '/'"),
        ("a@2", "the character '@'"),
        ("a\nb", r"the character '\\n'"),
        ("x" * 201, "has 201 characters, 200 are allowed"),
    ):
        with pytest.raises(RuntimeError, match=text):
            gt.publish(name, gt.ones(1))
    with pytest.raises(TypeError, match="the name is 7, expected a string"):
        gt.publish(7, gt.ones(1))
    with pytest.raises(ValueError, match="to is 'everybody', expected 'team', 'all' or a list"):
        gt.publish("x", gt.ones(1), to="everybody")
    with pytest.raises(TypeError, match="publish"):
        gt.publish("x", {"f": lambda: 1})
    with pytest.raises(RuntimeError, match="has no version 9\n  hint: its versions are 1"):
        gt.shared("right@9")
    with pytest.raises(RuntimeError, match="the version in 'right@x' is 'x', expected a number"):
        gt.shared("right@x")
    with pytest.raises(RuntimeError, match="there is no publication 'wrong'"):
        gt.shared("wrong")
    with pytest.raises(TypeError, match="expected the state of a module, as into is given"):
        gt.shared("right", into=gt.nn.Linear(2, 2))
    with pytest.raises(RuntimeError, match="it contains no tensor"):
        gt.publish("empty", {})
    gt.publish("odd", {"w": gt.ones(2)})
    with pytest.raises(RuntimeError, match="Missing key"):
        gt.shared("odd", into=gt.nn.Linear(2, 2))
    failed = gt.nn.functional.cross_entropy(gt.ones(1, 2), gt.tensor([7], dtype=gt.int64))
    gt.synchronize()
    gt.publish("failed", failed)
    # It may have ended before it is looked for.
    reason = "'failed@1' was not published: .*index 7 is out of range|no publication 'failed'"
    with pytest.raises(RuntimeError, match=reason):
        gt.shared("failed")


def test_sessions_of_workers_in_this_process_do_not_publish():
    gt.workers(1)
    for use in (lambda: gt.publish("x", gt.ones(1)), lambda: gt.shared("x"), gt.published):
        with pytest.raises(ConnectionError, match="which no other program uses\n  hint: start a"):
            use()


def test_who_may_read_and_how_much_may_be_published(tmp_path):
    path, policy = tmp_path / "key", tmp_path / "policy.yaml"
    write_key(path, run_gt("key").stdout)
    policy.write_text("users: {dan: {memory: 1MB}}\n")
    made = {}
    for user in ("ada@vision", "bob@vision", "eve@speech", "dan@speech"):
        name, _, team = user.partition("@")
        options = ("--user", name, "--team", team, "--of-file", str(path))
        made[name] = run_gt("key", *options).stdout.strip()
    options = ("--key-file", str(path), "--policy", str(policy))
    with cluster(1, *options, worker_options=("--key-file", str(path))) as (address, _):

        def run(user: str, code: str) -> str:
            begin = "import sys, gt; gt.connect(sys.argv[1])\n"
            done = run_python(begin + code, address, GT_KEY=made[user])
            return done.stdout if done.returncode == 0 else done.stderr

        assert run("ada", "print(gt.publish('m', gt.ones(2)))") == "ada/m@1\n"
        assert run("ada", "print(gt.publish('own', gt.ones(3), to=['eve']))") == "ada/own@1\n"
        assert run("bob", "print(gt.shared('m').tolist())") == "[1.0, 1.0]\n"
        assert "there is no publication 'm'" in run("eve", "gt.shared('m')")
        assert "there is no publication 'ada/m'" in run("eve", "gt.shared('ada/m')")
        assert run("eve", "print(gt.shared('own').sum().item())") == "3.0\n"
        assert "published are ada/m" in run("bob", "gt.shared('own')")
        assert run("bob", "print(gt.publish('m', gt.zeros(1)))") == "bob/m@1\n"
        assert run("bob", "print(gt.shared('m').shape, gt.shared('ada/m').shape)") == "(1,) (2,)\n"
        assert "belongs to ada" in run("bob", "gt.unpublish('ada/m')")
        assert run("bob", "print([of.name for of in gt.published()])") == "['ada/m', 'bob/m']\n"
        refused = run("dan", "gt.publish('m', gt.zeros(300_000))")
        assert "user dan may hold 1000000, of which publications have 0" in refused
