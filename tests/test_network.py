"""Servers, workers and clients as separate processes."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import pytest
from processes import (
    HONOUR_CTRL_C,
    cluster,
    embedded_only,
    program,
    run_gt,
    run_program,
    run_python,
    start_program,
    write_key,
)

pytestmark = embedded_only

CLIENT = """
import sys, gt
gt.connect(sys.argv[1])
"""


def client(address: str, code: str, **options):
    return run_python(CLIENT + code, address, **options)


@pytest.fixture(scope="module")
def served():
    with cluster(2) as (address, processes):
        yield address, processes


def test_a_client_computes(served):
    done = run_program("network/computes", served[0])
    assert done.stdout == "[2.0, 2.0, 2.0] True\n" and done.stderr == "", done


def test_training_on_a_server_and_embedded_compute_the_same(served):
    remote, local = run_program("network/training", served[0]), run_program("network/training")
    assert remote.stdout and abs(float(remote.stdout) - float(local.stdout)) < 1e-6, (remote, local)


def test_clients_are_independent_and_leave_no_tensors(served):
    code = (
        "x = [gt.full((1000,), float(sys.argv[2])) for _ in range(100)]\n"
        "for _ in range(50): x = [t + 1 for t in x]\n"
        "print(sum(t.sum().item() for t in x))\n"
    )
    command = [sys.executable, "-c", CLIENT + code, served[0]]
    clients = [
        subprocess.Popen([*command, str(n)], stdout=subprocess.PIPE, text=True) for n in range(4)
    ]
    for number, process in enumerate(clients):
        out, _ = process.communicate(timeout=60)
        assert float(out) == 100 * 1000 * (number + 50)
    assert tensors(served[0]) == 0


def tensors(address: str) -> int:
    done = client(
        address,
        "print(sum(s['memory']['tensors'] for s in gt.debug.get_worker_stats().values()))\n",
    )
    return int(done.stdout)


def test_a_killed_client_is_freed_within_a_second(served):
    code = (
        "import time\n"
        "x = [gt.ones(1000) for _ in range(500)]\n"
        "x[0].tolist(); print('ready', flush=True)\n"
        "while True: x[0] = x[0] + 1\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", CLIENT + code, served[0]], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.2)
    process.kill()
    process.communicate()
    time.sleep(1)
    assert tensors(served[0]) == 0


def test_a_dead_worker_is_named_and_the_session_continues():
    with cluster(1, "--lineage", "0") as (address, processes):
        process = start_program("network/lost_worker", address)
        assert process.stdout.readline() == "ready\n"
        processes[1].kill()
        processes[1].wait()
        port = address.rsplit(":")[1]
        other = subprocess.Popen(
            [sys.executable, "-m", "gt.worker", "-p", port, "--id", "w1"],
            stdout=subprocess.PIPE,
            text=True,
        )
        other.stdout.readline()
        out, error = process.communicate("go\n", timeout=30)
        other.terminate()
        other.communicate(timeout=10)
        assert out == "True\n[2.0, 2.0]\n", (out, error)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_the_slots_of_a_dead_worker_move_to_the_others(which):
    """The remaining workers compute its shards, and exchange them between their own slots."""
    with cluster(3) as (address, processes):
        process = start_program("network/sharded_total", address)
        first = process.stdout.readline()
        processes[1 + which].kill()
        processes[1 + which].wait()
        out, error = process.communicate("go\n", timeout=60)
        assert first == out == "[66.0, 66.0, 66.0, 66.0, 66.0]\n", (first, out, error)


def test_no_worker_is_an_error_after_the_time_limit():
    with cluster(0, "--worker-wait", "0.5") as (address, _):
        done = client(address, "gt.ones(2).tolist()\n")
        assert "no worker" in done.stderr and "gt worker --address" in done.stderr
        done = client(address, "gt.debug.get_worker_stats()\n")
        assert "no worker" in done.stderr and done.returncode == 1


def test_a_killed_server_is_noticed():
    with cluster(1) as (address, processes):
        code = (
            "x = gt.ones(3); x.tolist()\n"
            "print('ready', flush=True); sys.stdin.readline()\n"
            "try: (x + 1).tolist()\n"
            "except ConnectionError as error: print('lost or ended:', error)\n"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", CLIENT + code, address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout.readline() == "ready\n"
        processes[0].kill()
        processes[0].wait()
        out, _ = process.communicate("go\n", timeout=30)
        assert out.startswith("lost or ended:") and address in out, out
        assert processes[1].wait(timeout=10) == 1, "the worker exits, too"


def test_wrong_addresses():
    for address, word in [
        ("localhost:1", "nothing answers"),
        ("not an address", "host:port"),
        ("localhost:x", "host:port"),
    ]:
        done = client(address, "")
        assert word in done.stderr and done.returncode == 1, done


def test_a_second_server_names_the_first(served):
    port = served[0].rsplit(":")[1]
    second = subprocess.run(
        [sys.executable, "-m", "gt.server", "-p", port], capture_output=True, text=True, timeout=20
    )
    assert second.returncode == 1
    assert f"in use by another gt server (process {served[1][0].pid})" in second.stderr
    assert client(served[0], "print(gt.ones(1).item())\n").stdout == "1.0\n"


def test_keys(tmp_path):
    refused = subprocess.run(
        [sys.executable, "-m", "gt.server", "-H", "0.0.0.0", "-p", "9"],
        capture_output=True,
        text=True,
        timeout=20,
        env={key: value for key, value in os.environ.items() if key != "GT_KEY"},
    )
    assert refused.returncode == 1 and "needs a key" in refused.stderr, refused
    make = [sys.executable, "-m", "gt", "key"]
    key = subprocess.run(make, capture_output=True, text=True).stdout.strip()
    limited = [*make, "--role", "client", "--of", key]
    client_key = subprocess.run(limited, capture_output=True, text=True).stdout.strip()
    write_key(tmp_path / "key", key)
    with cluster(0, "--key-file", str(tmp_path / "key")) as (address, _):
        port = address.rsplit(":")[1]
        worker = [sys.executable, "-m", "gt.worker", "-p", port]
        without = subprocess.run(worker, capture_output=True, text=True, timeout=20)
        assert without.returncode == 1 and "key" in without.stderr
        wrong_role = subprocess.run(
            worker,
            capture_output=True,
            text=True,
            timeout=20,
            env={**os.environ, "GT_KEY": client_key},
        )
        assert wrong_role.returncode == 1 and "for a client" in wrong_role.stderr
        right = subprocess.Popen(
            [*worker, "--key-file", str(tmp_path / "key")], stdout=subprocess.PIPE, text=True
        )
        right.stdout.readline()
        done = client(address, "print(gt.ones(1).item())\n", GT_KEY=client_key)
        right.terminate()
        right.communicate(timeout=10)
        assert done.stdout == "1.0\n", done


def test_keys_prove_the_names_of_users(tmp_path):
    """A server names the user of a session, and refuses a key with a forged name."""

    def make(*options: str, key: str = "") -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "gt", "key", *options]
        return subprocess.run(command, input=key, capture_output=True, text=True, timeout=30)

    cluster_key = make().stdout.strip()
    of_ada = make("--user", "ada", "--team", "vision", "--of-file", "-", key=cluster_key)
    assert (of_ada.returncode, of_ada.stderr) == (0, "")
    ada = of_ada.stdout.strip()
    for options, message in [
        (["--user", "ada"], "--user needs --of-file"),
        (["--team", "vision"], "--team needs --user"),
        (["--user", "ada", "--role", "worker", "--of-file", "-"], "--role worker"),
        (["--user", "a b", "--of-file", "-"], "the user is 'a b', expected"),
        (["--user", "bob", "--of", ada], "for a user, a key for a cluster"),
    ]:
        wrong = make(*options, key=cluster_key)
        assert wrong.returncode in (1, 2) and message in wrong.stderr, wrong
    write_key(tmp_path / "key", cluster_key)
    keys = ("--key-file", str(tmp_path / "key"))
    names = "print(gt.ones(1).item(), [session['name'] for session in gt.status().sessions])\n"
    with cluster(1, *keys, worker_options=keys) as (address, _):
        done = client(address, names, GT_KEY=ada)
        assert re.fullmatch(r"1.0 \['-c ada@\S+ #1'\]\n", done.stdout), done
        forged = client(address, names, GT_KEY=ada.replace("ada:vision", "bob:vision"))
        assert forged.returncode == 1 and "does not prove that its user is 'bob'" in forged.stderr
        bob = make("--user", "bob", "--of-file", "-", key=cluster_key).stdout.strip()
        with program(address, GT_KEY=ada), program(address, GT_KEY=bob):
            for key, sees_bob in [(ada, False), (cluster_key, True)]:
                options = ("-s", "1", "--port", address.split(":")[1], "-o", "trace.log")
                done = run_gt("trace", *options, "--dir", str(tmp_path), GT_KEY=key)
                assert (done.returncode, done.stderr) == (0, ""), done
                log = (tmp_path / "trace.log").read_text()
                # A user's key shows what that user's sessions do.
                assert "ada@" in log and ("bob@" in log) == sees_bob, log[:400]


def test_garbage_and_other_protocols_do_not_disturb_clients(served):
    host, port = served[0].split(":")
    for junk in [b"GET / HTTP/1.1\r\n\r\n", os.urandom(5000), b"\xff" * 64, b""]:
        with socket.create_connection((host, int(port))) as stranger:
            stranger.sendall(junk)
    assert client(served[0], "print(gt.ones(1).item())\n").stdout == "1.0\n"


def test_ctrl_c_interrupts_a_fetch_over_the_network(served):
    address, (_, *workers) = served
    code = (
        "x = gt.randn(100, 100)\n"
        "print(f'ready {x.isfinite().all().item()}', flush=True)\n"
        "try: input(); (x @ x).sum().item()\n"
        "except KeyboardInterrupt: print('interrupted', flush=True)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", HONOUR_CTRL_C + CLIENT + code, address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout.readline() == "ready True\n"
        for worker in workers:
            worker.send_signal(signal.SIGSTOP)
        try:
            process.stdin.write("fetch\n")
            process.stdin.flush()
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            start = time.monotonic()
            assert process.stdout.readline() == "interrupted\n"
            assert time.monotonic() - start < 5
        finally:
            for worker in workers:
                worker.send_signal(signal.SIGCONT)


def test_ipc(tmp_path):
    path = str(tmp_path / "gt.sock")
    server = subprocess.Popen(
        [sys.executable, "-m", "gt.server", "--ipc", path], stdout=subprocess.PIPE, text=True
    )
    server.stdout.readline()
    worker = subprocess.Popen(
        [sys.executable, "-m", "gt.worker", "--address", f"ipc://{path}"],
        stdout=subprocess.PIPE,
        text=True,
    )
    worker.stdout.readline()
    done = client(f"ipc://{path}", "print(gt.ones(3).sum().item())\n")
    for process in (worker, server):
        process.terminate()
        process.communicate(timeout=10)
    assert done.stdout == "3.0\n", done


LINE = re.compile(
    r"\d+\.\d{3}s \| #(\d{4,}) \| (CONNECT|DISCONNECT|RECV|SEND|WORKER_SEND|WORKER_RECV|ERROR"
    r"|ISSUE|QUEUE|PLAN|MOVE|COMPILE) *\| (CLIENT|WORKER) \S+ *\| (\w+) *\| +\d+B \| .*"
)


def test_the_instruction_log(tmp_path):
    log = tmp_path / "gt.log"
    done = run_python(
        "import gt\n"
        "with gt.signal.context('layer'):\n"
        "    x = gt.tensor([1, 2]) + gt.tensor([3, 4])\n"
        "print(x.sum().item(), x.reshape(2, 1)[:1].tolist(), gt.cat([x, x]).relu().tolist())\n"
        "del x\n"
        "gt.synchronize()\n",
        GT_INSTRUCTION_LOG=str(log),
    )
    assert done.returncode == 0, done
    matches = [LINE.fullmatch(line) for line in log.read_text().splitlines()]
    assert all(matches), [line for line in log.read_text().splitlines() if not LINE.fullmatch(line)]
    assert [int(m[1]) for m in matches] == list(range(1, len(matches) + 1))
    commands = {m[4] for m in matches}
    for (
        command
    ) in "CreateTensor BinaryOp UnaryOp ReshapeOp SliceOp ConcatOp GetData FreeTensor".split():
        assert {command, f"Worker{command}"} <= commands, (command, commands)
    assert "op=add left=0 right=1" in log.read_text() and "name=layer" in log.read_text()


def test_help_and_mistakes_of_commands():
    for command in (["gt"], ["gt", "--help"], ["gt.server", "--help"], ["gt.worker", "--help"]):
        done = subprocess.run(
            [sys.executable, "-m", *command], capture_output=True, text=True, timeout=20
        )
        assert done.returncode == 0 and "usage" in done.stdout, done
    done = subprocess.run(
        [sys.executable, "-m", "gt", "nonsense"], capture_output=True, text=True, timeout=20
    )
    assert done.returncode == 2 and "nonsense" in done.stderr
    assert json.dumps(done.stdout) == '""'
