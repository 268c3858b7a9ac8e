"""Run functions in other threads, for tests."""

import threading


def in_thread(act, *args):
    """Run a function in a new thread; return its result, or raise its error."""
    outcome = {}

    def run():
        try:
            outcome["result"] = act(*args)
        except BaseException as error:
            outcome["error"] = error

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    if "error" in outcome:
        raise outcome["error"]
    return outcome["result"]
