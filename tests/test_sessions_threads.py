"""Sessions and threads: a thread has its own session, or uses one that it does not end."""

import threading

import gt
import pytest
from threads import in_thread


def test_threads_have_their_own_sessions():
    together = threading.Barrier(4)

    def work(number):
        with gt.Session() as session:
            together.wait(30)
            x = gt.full((50,), float(number))
            for _ in range(200):
                x = x + 1
            assert x.tolist() == [number + 200.0] * 50 and gt.current_session() is session
            together.wait(30)
            return session

    sessions = []
    threads = [
        threading.Thread(target=lambda n=number: sessions.append(work(n))) for number in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(set(sessions)) == 4 and all(session.closed for session in sessions)
    assert gt.ones(1).item() == 1


def test_other_threads_may_use_a_session():
    with gt.Session() as session:
        x = gt.arange(4)

        def work(session):
            assert gt.current_session() is not session
            with session.use():
                return gt.arange(4) + x

        assert in_thread(work, session).tolist() == [0, 2, 4, 6]
        # Without `use`, operations run in the session of their operands.
        assert in_thread(lambda: (x * 2).tolist()) == [0, 2, 4, 6]
        assert not session.closed


def test_threads_that_have_not_connected_use_the_main_threads_session():
    session = gt.current_session()
    assert in_thread(gt.current_session) is session
    x = in_thread(lambda: gt.ones(2))
    assert (x + gt.ones(2)).tolist() == [2, 2]


def test_a_block_must_end_in_its_thread():
    with gt.Session() as session:
        with pytest.raises(RuntimeError, match="ends in a thread that is not in it"):
            in_thread(session.__exit__, None, None, None)
        assert session.closed


def test_a_thread_does_not_end_the_main_threads_session():
    session = gt.current_session()
    with pytest.raises(RuntimeError, match="uses the main thread's session") as caught:
        in_thread(gt.disconnect)
    assert session._open.place in str(caught.value)
    assert gt.ones(1).item() == 1 and gt.current_session() is session
