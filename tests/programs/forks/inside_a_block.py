"""Fork inside the block of a session, in the main thread and in another thread."""

import os
import threading

import gt


def child(act):
    """Run a function in a forked child; return the exit code."""
    process = os.fork()
    if process == 0:
        act()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def check():
    """Compute in the inherited session, and close it."""
    print((x + 1).tolist(), gt.ones(1).tolist(), flush=True)
    session.close()
    try:
        gt.ones(1)
    except ConnectionError:
        print("closed", flush=True)


def work():
    """Fork a child inside another session."""
    with gt.Session():
        print(child(lambda: print(gt.ones(1).tolist(), flush=True)))


with gt.Session() as session:
    x = gt.ones(2)
    print(child(check), flush=True)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    print((x + 2).tolist())
print(session.closed)
