"""PyTorch's database of optimizer tests, run on GT; as a program, it prints a table of results."""

import itertools
import sys
import warnings

import gt
import numpy as np
import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # about optional packages that are missing
    from torch.testing._internal.common_optimizers import optim_db

STEPS = 5


def start(of_two_axes):
    """Return the initial parameters, and the gradients of each step."""
    chance = np.random.default_rng(0)
    shapes = [(3, 4), (5, 2)] if of_two_axes else [(3, 4), (5,), ()]
    draw = lambda shape: np.asarray(chance.standard_normal(shape), np.float64)  # noqa: E731
    return [draw(s) for s in shapes], [[draw(s) for s in shapes] for _ in range(STEPS)]


def converted(value, lib):
    """Convert an option for a library: tensors become that library's tensors."""
    if isinstance(value, torch.Tensor):
        return lib.tensor(value.tolist()) if lib is gt else value
    if isinstance(value, tuple):
        return tuple(converted(item, lib) for item in value)
    return value


def run(lib, kind, options):
    """Return the parameters after `STEPS` steps."""
    values, gradients = start(kind.__name__ == "Muon")
    make = (
        (lambda v: gt.tensor(v, dtype=gt.float64))
        if lib is gt
        else lambda v: torch.tensor(v.copy())
    )
    parameters = [lib.nn.Parameter(make(value)) for value in values]
    options = {name: converted(value, lib) for name, value in options.items()}
    optimizer = kind(parameters, **options)
    steps = itertools.cycle(gradients)

    def closure():
        optimizer.zero_grad()
        loss = sum((p.sin() * (i + 1)).sum() for i, p in enumerate(parameters))
        loss.backward()
        return loss

    for _ in range(STEPS):
        if kind.__name__ == "LBFGS":
            optimizer.step(closure)
            continue
        for parameter, gradient in zip(parameters, next(steps), strict=True):
            parameter.grad = make(gradient)
        optimizer.step()
    return [parameter.detach().numpy() for parameter in parameters]


def entries():
    """Yield each optimizer of the database with each of its options."""
    for info in optim_db:
        name = info.optim_cls.__name__
        for index, given in enumerate(info.optim_inputs_func(device="cpu")):
            options = dict(given.kwargs)
            if name == "SGD":
                options.setdefault("lr", 1e-3)  # both libraries' default, made explicit
            yield f"{name}[{index}] {given.desc}", info.optim_cls, options


def check(kind, options):
    """Return a description of the difference from PyTorch, or an empty string."""
    ours = getattr(gt.optim, kind.__name__, None)
    if ours is None:
        return "missing"
    try:
        want = run(torch, kind, options)
    except Exception as error:
        try:
            run(gt, ours, options)
        except type(error):
            return ""
        except Exception as other:
            return f"raises {type(other).__name__}, PyTorch {type(error).__name__}"
        return f"raises nothing, PyTorch {type(error).__name__}"
    try:
        got = run(gt, ours, options)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    # Muon computes in bfloat16; PyTorch keeps some state in float32.
    tolerance = 2e-2 if kind.__name__ == "Muon" else 1e-7
    for one, other in zip(got, want, strict=True):
        if not np.allclose(one, other, rtol=tolerance, atol=tolerance):
            return f"differs by {np.abs(one - other).max():.2g}"
    return ""


def table():
    """Return for each optimizer: the number of entries, of those that pass, and the problems."""
    rows = {}
    for name, kind, options in entries():
        row = rows.setdefault(kind.__name__, [0, 0, []])
        problem = check(kind, options)
        row[0] += 1
        row[1] += not problem
        if problem:
            row[2].append(f"{name}: {problem}")
    return rows


def main():
    """Print the table."""
    rows = table()
    print("| optimizer | entries | pass |\n| --- | --- | --- |")
    for name, (count, passed, _) in rows.items():
        print(f"| {name} | {count} | {passed} |")
    for _, _, problems in rows.values():
        print(*problems, sep="\n", end="\n" if problems else "")


if __name__ == "__main__":
    sys.exit(main())
