"""`gt.watch()`: as text lines, and as a cell that is updated."""

import os
import signal
import threading
import time
from types import SimpleNamespace

import gt
import pytest
from gt._display import notebook
from gt.session import watch as watching
from gt.session.watched import own_sessions
from markup import texts_of
from processes import cluster, embedded_only, one_engine_only, start_program, unsharded_only

pytestmark = [embedded_only, one_engine_only, unsharded_only]


def session(name, user="", login="ada"):
    return {"name": name, "user": user, "login": login}


def test_whose_sessions_are_shown():
    plain = [session("a"), session("b"), session("c", login="bob"), session("d", "eve", "ada")]
    assert own_sessions(plain, "a") == plain[:2]
    keyed = [session("a", "ada", "x"), session("b", "ada", "y"), session("c", "bob", "x")]
    assert own_sessions(keyed, "b") == keyed[:2]
    # The server may know the session by another name after a restart.
    assert own_sessions(keyed, "z") == keyed


def test_outside_of_notebooks_it_prints_tables(capsys):
    gt.ones(2).sum().item()
    view = gt.watch(seconds=0.25, every=0.1)
    pictures = capsys.readouterr().out.split("\n\nthis process")
    assert len(pictures) >= 2, pictures
    for picture in pictures:
        assert "auto_worker_0" in picture and "of 1 sessions is yours, at " in picture
    assert view.ended and repr(view) == "<gt.Watch: ended, its time is over>"
    view.stop()
    assert repr(view) == "<gt.Watch: ended, its time is over>"


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"every": 0.01}, ValueError, "watch: every is 0.01, expected 0.1 seconds or more"),
        ({"every": "1"}, TypeError, "watch: every is '1', expected a number of seconds"),
        ({"every": float("nan")}, ValueError, "watch: every is nan"),
        ({"seconds": -1}, ValueError, "watch: seconds is -1, expected 0 seconds or more"),
        ({"seconds": True}, TypeError, "watch: seconds is True, expected a number"),
    ],
)
def test_numbers_out_of_range(options, kind, words):
    with pytest.raises(kind) as raised:
        gt.watch(**options)
    assert str(raised.value).startswith(words)


def test_ctrl_c_ends_it_and_the_program_goes_on():
    process = start_program("watch/until_interrupted")
    assert process.stdout.readline().startswith("this process")
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, ""), errors
    assert out.endswith("<gt.Watch: ended, interrupted>\n"), out


def test_the_loss_of_the_server_is_an_error():
    with cluster(1) as (address, processes):
        process = start_program("watch/until_interrupted", address)
        assert process.stdout.readline().startswith(f"the server at {address}")
        processes[0].kill()
        try:
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 1 and "ConnectionError" in errors, errors


class Cell:
    """A notebook's cell: what it shows, and what has updated it."""

    def __init__(self):
        self.shown, self.views = [], []

    def update(self, bundle, *, raw):
        self.shown.append(bundle)
        if self.shown[0] is None:
            raise OSError("the kernel ends")

    def display(self, bundle, *, raw):
        self.views.append(bundle)

    def wait(self, words: str, updates: int = 0) -> str:
        """Return the text once it has some words and was updated so often."""
        limit = time.monotonic() + 60
        while time.monotonic() < limit:
            text = self.shown[-1]["text/plain"]
            if words in text and len(self.shown) > updates:
                return text
            time.sleep(0.01)
        pytest.fail(f"no '{words}' in {text}")


class Notebook:
    """A notebook's kernel."""

    def __init__(self):
        self.execution_count, self.cells, self.calls = 0, [], []
        self.events = SimpleNamespace(register=lambda _, call: self.calls.append(call))
        self.history_manager = SimpleNamespace(input_hist_raw=[""])
        self.parent = {}

    def get_parent(self):
        return self.parent

    def run(self, text: str, cell_id: str | None = None) -> None:
        """Begin to run a cell, whose id some notebooks send."""
        self.execution_count += 1
        self.parent = {"metadata": {"cellId": cell_id} if cell_id else {}}
        for call in self.calls:
            call(SimpleNamespace(raw_cell=text, cell_id=cell_id))
        self.history_manager.input_hist_raw.append(text)

    def display_live(self, bundle):
        self.cells.append(Cell())
        self.cells[-1].shown.append(bundle)
        return self.cells[-1]


@pytest.fixture
def kernel(monkeypatch):
    kernel = Notebook()
    monkeypatch.setattr(notebook, "shell", lambda: kernel)
    monkeypatch.setattr(notebook, "_CALLS", [])
    monkeypatch.setattr(notebook, "display_live", kernel.display_live)
    yield kernel
    watching._end_all()


def test_a_cell_is_updated_until_it_is_stopped(kernel):
    kernel.run("view = gt.watch()")
    view = gt.watch(every=0.1)
    (cell,) = kernel.cells
    assert "(live)" in cell.wait("1 of 1 sessions is yours") and repr(view) == "<gt.Watch: live>"
    cell.wait("(live)", updates=3)
    assert "auto_worker_0" in texts_of(cell.shown[-1]["text/html"])
    view._ipython_display_()
    assert not cell.views, "its own cell shows it already"
    kernel.run("view")
    view._ipython_display_()
    assert len(cell.views) == 1
    view.stop()
    assert "(ended: stopped)" in cell.wait("ended") and view.ended
    assert repr(view) == "<gt.Watch: ended, stopped>" and not watching._LIVE


def test_a_cell_that_runs_again_ends_it(kernel):
    kernel.run("gt.watch()")
    view = gt.watch(every=0.1)
    kernel.run("1 + 1")
    assert not view.ended
    kernel.run("gt.watch()")
    assert view.ended
    kernel.cells[0].wait("(ended: its cell runs again)")


def test_a_cell_that_was_changed_and_runs_again_ends_it(kernel):
    kernel.run("gt.watch()", "a")
    view = gt.watch(every=0.1)
    kernel.run("1 + 1", "b")
    assert not view.ended
    kernel.run("1 + 2", "a")
    assert view.ended


def test_another_cell_ends_the_view_of_the_same_session(kernel):
    kernel.run("gt.watch()")
    view = gt.watch(every=0.1)
    kernel.run("gt.watch(every=0.1)")
    other = gt.watch(every=0.1)
    kernel.cells[0].wait("(ended: another cell shows the same)")
    assert view.ended and not other.ended
    with gt.Session(workers=2):
        kernel.run("in a block")
        third = gt.watch(every=0.1)
        kernel.cells[2].wait("2 worker(s)")
        assert not other.ended and len(watching._LIVE) == 2
    kernel.cells[2].wait("(ended: session")
    assert third.ended and not other.ended
    other.stop()


def test_the_end_of_the_time_ends_it(kernel):
    kernel.run("gt.watch()")
    gt.watch(every=0.1, seconds=0.2)
    kernel.cells[0].wait("(ended: its time is over)")


def test_the_end_of_the_server_ends_it(kernel):
    kernel.run("gt.watch()")
    with cluster(1) as (address, processes), gt.Session(address):
        view = gt.watch(every=0.1)
        kernel.cells[0].wait(f"the server at {address}")
        processes[0].kill()
        kernel.cells[0].wait("(ended: ")
        assert view.ended and not watching._LIVE


def test_a_notebook_that_is_gone_ends_it(kernel):
    kernel.run("gt.watch()")
    view = gt.watch(every=0.1)
    kernel.cells[0].shown[0] = None
    view._ends.wait(60)
    assert repr(view) == "<gt.Watch: ended, the kernel ends>"


def test_it_does_not_keep_its_session_open(kernel):
    kernel.run("gt.watch()")
    session = gt.Session(workers=1)
    with session.use():
        view = gt.watch(every=0.1)
    kernel.cells[0].wait("live")
    session.close()
    kernel.cells[0].wait("(ended: session")
    assert view._session is None


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_has_no_view(kernel):
    kernel.run("gt.watch()")
    view = gt.watch(every=0.1)
    for _ in range(20):
        child = os.fork()
        if child == 0:
            view.stop()
            ended = view.ended and not watching._LIVE and not threading.active_count() > 1
            os._exit(0 if ended else 1)
        limit = time.monotonic() + 60
        while (done := os.waitpid(child, os.WNOHANG)) == (0, 0):
            assert time.monotonic() < limit, "the child hangs"
            time.sleep(0.01)
        assert done[1] == 0
    assert not view.ended
    view.stop()
