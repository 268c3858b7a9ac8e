"""Compute in the processes of a multiprocessing pool. Argument: the start method."""

import multiprocessing
import sys

import gt


def work(n):
    """Return the sum of a product of matrices."""
    return (gt.ones(n, n) @ gt.ones(n, n)).sum().item()


if __name__ == "__main__":
    gt.ones(3).sum().item()
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(2) as pool:
        print(pool.map(work, [2, 30, 300]))
    print(gt.ones(3).sum().item())
