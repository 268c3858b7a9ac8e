"""Sessions on servers: connections of threads, and their ends."""

import gc
import threading
import time
from contextlib import closing, contextmanager

import gt
import pytest
from processes import cluster, embedded_only, run_program, run_python, write_key
from threads import in_thread

pytestmark = embedded_only


@pytest.fixture(scope="module")
def served():
    with cluster(1) as (address, _):
        yield address


@contextmanager
def other_thread():
    """Yield a function that runs functions in one other thread."""
    requests, answers = [], []
    arrived, done = threading.Semaphore(0), threading.Semaphore(0)

    def serve():
        while True:
            arrived.acquire()
            act = requests.pop()
            if act is None:
                return
            try:
                answers.append((act(), None))
            except BaseException as error:
                answers.append((None, error))
            done.release()

    def call(act):
        requests.append(act)
        arrived.release()
        assert done.acquire(timeout=60)
        result, error = answers.pop()
        if error is not None:
            raise error
        return result

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield call
    finally:
        requests.append(None)
        arrived.release()
        thread.join(60)


def sessions_at(session: gt.Session) -> int:
    with session.use():
        return len(gt.status().sessions)


def sessions_in_the_end(session: gt.Session, expected: int) -> int:
    """Return the number of a server's sessions, which learns of an end after a moment."""
    gc.collect()  # Caught errors hold frames, and these hold tensors.
    for _ in range(100):
        count = sessions_at(session)
        if count == expected:
            break
        time.sleep(0.02)
    return count


def test_a_block_on_a_server(served):
    outside = gt.current_session()
    with gt.Session(served) as session:
        assert repr(session).endswith(f": the server at {served}>")
        x = gt.randn(20, 20)
        assert gt.Session.of(x) is session and gt.status().at == f"the server at {served}"
        assert (x @ x).sum().item() == (x @ x).sum().item()
        with gt.Session(served) as second:
            assert second != session and sessions_at(second) == 2
            with pytest.raises(RuntimeError, match="different sessions") as caught:
                x + gt.ones(20, 20)
            places = [line.split(": ", 1)[1] for line in str(caught.value).splitlines()[1:3]]
            assert places == [f"the server at {served}"] * 2
        assert sessions_in_the_end(session, 1) == 1
    assert gt.current_session() is outside
    with pytest.raises(ConnectionError):
        x.tolist()


def test_one_thread_disconnects_and_the_others_continue(served):
    mine = gt.current_session()
    with closing(gt.Session(served)) as watching, other_thread() as first, other_thread() as second:
        first(lambda: gt.connect(served))
        second(lambda: gt.connect(served))
        assert gt.current_session() is mine, "the main thread keeps its session"
        x, y = first(lambda: gt.ones(3)), second(lambda: gt.ones(3))
        assert len({mine, gt.Session.of(x), gt.Session.of(y)}) == 3 and sessions_at(watching) == 3

        first(gt.disconnect)
        assert sessions_in_the_end(watching, 2) == 2
        with pytest.raises(
            ConnectionError, match=f"^this thread disconnected from the server at {served}\n"
        ):
            first(lambda: gt.ones(1))
        with pytest.raises(ConnectionError, match="^this thread disconnected from"):
            first(gt.status)
        first(gt.disconnect)
        first(gt.synchronize)
        with pytest.raises(ConnectionError):
            x.tolist()
        assert second(lambda: (gt.ones(3) + y).tolist()) == [2, 2, 2]
        assert gt.ones(1).item() == 1 and gt.current_session() is mine

        # A block works all the same, and a new connection replaces the old one.
        assert first(lambda: compute_in_block(served)) == [2, 2]
        with pytest.raises(RuntimeError, match="gpu_workers: this thread has a session of its"):
            first(lambda: gt.gpu_workers(2))
        first(lambda: gt.connect(served))
        assert first(lambda: gt.ones(2).tolist()) == [1, 1]


def compute_in_block(address: str) -> list[float]:
    with gt.Session(address):
        return (gt.ones(2) + 1).tolist()


def test_the_seed_of_a_thread_is_its_own(served):
    gt.manual_seed(3)
    first = gt.rand(4).tolist()
    with other_thread() as other:
        other(lambda: gt.connect(served))
        assert other(lambda: gt.rand(4).tolist()) == first, (
            "a connection starts with the seed of the program"
        )
        other(lambda: gt.manual_seed(4))
        second = other(lambda: gt.rand(4).tolist())
        other(lambda: gt.connect(served))
        assert other(lambda: gt.rand(4).tolist()) == second
    gt.manual_seed(3)
    assert gt.rand(4).tolist() == first != second


def test_the_connection_of_a_thread_ends_with_its_last_tensor(served):
    def work():
        gt.connect(served)
        return gt.ones(3) + 1

    with gt.Session(served) as watching:
        x = in_thread(work)
        assert sessions_in_the_end(watching, 2) == 2, "a tensor keeps the session"
        assert (x * 2).tolist() == [4, 4, 4]
        del x
        assert sessions_in_the_end(watching, 1) == 1


def test_a_session_lives_as_long_as_its_tensors(served):
    with gt.Session(served) as watching:
        session = gt.Session(served)
        with session.use():
            x = gt.ones(2)
        del session
        assert (x + 1).tolist() == [2, 2] and sessions_in_the_end(watching, 2) == 2
        session = gt.Session.of(x)
        with session.use():
            assert (gt.ones(2) + x).tolist() == [2, 2]
        session.close()
        assert sessions_in_the_end(watching, 1) == 1


def test_a_second_connection_replaces_the_first(served):
    def work():
        gt.connect(served)
        x = gt.ones(2)
        gt.connect(served)
        assert gt.Session.of(x) is not gt.current_session()
        return (x + 1).tolist(), gt.ones(1).tolist()

    assert in_thread(work) == ([2, 2], [1])


def test_training_in_several_threads_computes_the_same(served):
    def train(address):
        with gt.Session(address) as session:
            session.manual_seed(1)
            model = gt.nn.Sequential(gt.nn.Linear(8, 16), gt.nn.ReLU(), gt.nn.Linear(16, 3))
            x, y = gt.randn(32, 8), gt.randint(0, 3, (32,))
            optimizer = gt.optim.Adam(model.parameters(), lr=0.01)
            for _ in range(30):
                loss = gt.nn.cross_entropy_loss(model(x), y)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
            losses.append(loss.item())

    losses: list[float] = []
    places = [None, served, served, None]
    threads = [threading.Thread(target=train, args=(place,)) for place in places]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(losses) == 4 and max(losses) - min(losses) < 1e-5


def test_a_lost_server_ends_only_its_own_sessions(served):
    with cluster(1) as (address, processes):
        with gt.Session(served), gt.Session(address) as lost:
            x = gt.ones(3)
            x.tolist()
            processes[0].kill()
            processes[0].wait()
            with pytest.raises(ConnectionError, match=address):
                for _ in range(100):
                    (x + 1).tolist()
                    time.sleep(0.1)
            assert not lost.closed
        assert lost.closed
    assert gt.ones(2).tolist() == [1, 1]


def test_a_wrong_key_raises_and_changes_nothing(tmp_path):
    key, other = tmp_path / "a.key", tmp_path / "b.key"
    write_key(key, gt._gt.make_key())
    write_key(other, gt._gt.make_key())
    outside = gt.current_session()
    with cluster(0, "--key-file", str(key)) as (address, _):
        with gt.Session(address, key):
            assert gt.status().workers == []
        for wrong in ({"key_file": other}, {"key_file": tmp_path / "none.key"}, {"insecure": True}):
            with pytest.raises(ConnectionError, match="key"):
                gt.Session(address, **wrong)
        assert gt.current_session() is outside


def test_threads_share_the_main_threads_connection(served):
    done = run_program("sessions/main_thread", served)
    server = f"the server at {served}"
    others = "this thread uses the main thread's session, which disconnected from"
    assert done.stdout.splitlines() == [
        "True",
        server,
        "RuntimeError disconnect: this thread has not connected, and uses the main thread's "
        f"session ({server})",
        "[1.0]",
        f"ConnectionError {others} {server}",
        "None",
        "[1.0]",
        "<gt.Session 3: this process, 2 worker(s)>",
    ], done
    assert done.stderr == ""


def test_a_forked_child_connects_again(served):
    """A child that a thread with a connection forks cannot use this connection."""
    done = run_program("forks/on_server", served, PYTHONWARNINGS="ignore")
    assert done.stdout.splitlines() == [
        "this process is a fork of the one that connected",
        "[1.0]",
        f"this thread disconnected from the server at {served}",
        "0",
        "[2.0, 2.0]",
        "[2.0, 2.0] [1.0]",
    ], done
    assert done.stderr == ""


@pytest.mark.parametrize(
    "ending",
    [
        "session = gt.Session(sys.argv[1])\nwith session.use(): x = gt.ones(3)",
        "def work():\n"
        "    gt.connect(sys.argv[1])\n"
        "    while True: gt.ones(3).sum().item()\n"
        "for _ in range(2): threading.Thread(target=work, daemon=True).start()\n"
        "time.sleep(0.2)",
        "def work():\n"
        "    while True:\n"
        "        with gt.Session(sys.argv[1]): gt.ones(3).sum().item()\n"
        "for _ in range(2): threading.Thread(target=work, daemon=True).start()\n"
        "time.sleep(0.2)",
        "def work():\n"
        "    gt.connect(sys.argv[1]); kept.append(gt.ones(3))\n"
        "kept = []\n"
        "threading.Thread(target=work).start()",
        "child = os.fork()\nif child == 0: sys.exit(0)\nos.waitpid(child, 0)\n",
    ],
)
def test_every_way_to_exit_is_silent(served, ending):
    code = "import gt, os, sys, threading, time\ngt.connect(sys.argv[1])\ngt.ones(1).item()\n"
    done = run_python(code + ending, served)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with gt.Session(served) as watching:
        assert sessions_in_the_end(watching, 1) == 1
