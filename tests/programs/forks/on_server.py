"""Fork in a thread with a connection; the child connects again. Argument: the server's address."""

import os
import sys
import threading

import gt

address = sys.argv[1]


def print_error(act):
    """Print the first line of the ConnectionError that a function raises."""
    try:
        act()
    except ConnectionError as error:
        print(str(error).splitlines()[0], flush=True)


def child():
    """Use the inherited connection, a new one, and none."""
    print_error(lambda: (gt.ones(1) + 1).tolist())
    session.close()
    gt.connect(address)
    print(gt.ones(1).tolist(), flush=True)
    gt.disconnect()
    print_error(lambda: gt.ones(1))


def work():
    """Connect, fork, and compute on."""
    gt.connect(address)
    x = gt.ones(2)
    process = os.fork()
    if process == 0:
        child()
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
    print((x + 1).tolist())


session = gt.Session(address)
with session.use():
    y = gt.ones(2)
gt.ones(1).item()
thread = threading.Thread(target=work)
thread.start()
thread.join()
print((y + 1).tolist(), gt.ones(1).tolist())
