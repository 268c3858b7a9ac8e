"""Send tensors from a child process, and from a data loader's worker. Argument: how to start it."""

import sys

import gt.torch  # noqa: F401
import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return torch.tensor(i, device="cluster") ** 2


def send(queue):
    queue.put(torch.ones(2, 3, dtype=torch.bfloat16, device="cluster"))
    queue.put(torch.nn.Parameter(torch.ones(2, device="cluster")))
    queue.put([torch.zeros(0, 3, device="cluster"), torch.tensor(5, device="cluster")])
    queue.put(torch.ones(2, device="cluster", requires_grad=True) * 2)


if __name__ == "__main__":
    context = mp.get_context(sys.argv[1])
    queue = context.Queue()
    child = context.Process(target=send, args=(queue,))
    child.start()
    for _ in range(3):
        print(queue.get(timeout=50))
    try:
        queue.get(timeout=50)
    except RuntimeError as error:
        print(str(error).splitlines()[0])
    child.join()
    print(torch.cat(list(DataLoader(Squares(), batch_size=2, num_workers=1))).tolist())
