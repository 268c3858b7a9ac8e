"""Disconnect; print the errors of later tensors, in the main thread and in another one."""

import threading

import gt

gt.disconnect()  # No session has started yet.
gt.ones(1).item()
gt.disconnect()
gt.disconnect()
gt.synchronize()


def print_error():
    """Print the error that creating a tensor raises."""
    try:
        gt.ones(1)
    except ConnectionError as error:
        print(str(error))
    gt.disconnect()


print_error()
thread = threading.Thread(target=print_error)
thread.start()
thread.join()
with gt.Session():
    print(gt.ones(1).tolist())
gt.gpu_workers(2)
print(gt.ones(1).tolist(), gt.current_session())
