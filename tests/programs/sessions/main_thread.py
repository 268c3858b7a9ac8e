"""Use the main thread's connection in other threads; print results. Argument: the address."""

import sys
import threading

import gt


def run(act):
    """Print the result of a function in a new thread, or its error."""

    def work():
        try:
            print(act())
        except (ConnectionError, RuntimeError) as error:
            print(type(error).__name__, str(error).splitlines()[0])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


gt.connect(sys.argv[1])
run(lambda: gt.current_session() is gt.Session.of(gt.ones(1)))
run(lambda: gt.status().at)
run(gt.disconnect)
print(gt.ones(1).tolist())
gt.disconnect()
run(lambda: gt.ones(1))
run(gt.disconnect)
gt.connect(sys.argv[1])
run(lambda: gt.ones(1).tolist())
gt.disconnect()
gt.gpu_workers(2)
run(gt.current_session)
