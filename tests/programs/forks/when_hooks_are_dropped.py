"""Fork 30 times while threads drop tensors with hooks; print the children's exit codes."""

import os
import threading

import gt
from waiting import wait

own = threading.local()
done = threading.Event()


def tensors():
    """Return tensors with hooks of each kind."""
    leaf = gt.ones(2, requires_grad=True)
    leaf.register_hook(lambda grad: grad)
    leaf.register_post_accumulate_grad_hook(lambda tensor: None)
    result = leaf * 2
    result.register_hook(lambda grad: grad * 2)
    return leaf, result


def ends():
    """Leave tensors to the end of the thread."""
    own.tensors = [tensors() for _ in range(100)]


def works():
    """Drop tensors until the program is done, also after backward passes."""
    while not done.is_set():
        _, result = tensors()
        result.sum().backward()


gt.ones(1).item()
threads = [threading.Thread(target=works) for _ in range(2)]
for thread in threads:
    thread.start()
codes = []
for _ in range(30):
    ending = threading.Thread(target=ends)
    ending.start()
    ending.join()
    child = os.fork()
    if child == 0:
        _, made = tensors()
        os._exit((gt.ones(3) * 2 + made.sum()).tolist() != [6, 6, 6])
    codes.append(wait(child))
    if any(codes):
        break
done.set()
for thread in threads:
    thread.join()
print(codes)
