"""The arguments of the training programs, and the lines that they print."""

import argparse
import hashlib

import gt


def connect() -> argparse.Namespace:
    """Parse the command line, connect to its server, and return the arguments."""
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("steps", type=int)
    parser.add_argument("--insecure", action="store_true", help="connect without a key")
    parser.add_argument("--every", type=int, default=100, help="print the number of every Nth step")
    args = parser.parse_args()
    gt.connect(args.address, insecure=args.insecure)
    return args


def steps(args: argparse.Namespace):
    """Yield the numbers of the steps, and print every Nth of them."""
    for step in range(args.steps):
        if step % args.every == 0:
            print("step", step, flush=True)
        yield step


def print_hash(tensors: list[gt.Tensor]) -> None:
    """Print a hash of the values of tensors."""
    values = b"".join(tensor.numpy().tobytes() for tensor in tensors)
    print("hash", hashlib.sha256(values).hexdigest())
