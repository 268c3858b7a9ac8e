"""Run PyTorch's database of modules against GT: `python tests/nn/database.py --help`.

Each entry of the database has arguments and inputs. A module of PyTorch and one of GT are created
with the same arguments and load the same state. Then reprs, outputs, gradients of inputs and
parameters, and the states afterwards must agree, in training and in evaluation mode. GT's state is
loaded into PyTorch's module again, and the result is compared with the entry's reference.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import gt
import torch
from torch.testing._internal.common_modules import ModuleInfo, ModuleInput, module_db

sys.path.insert(0, str(Path(__file__).parent.parent / "coverage"))

from compare import Different, Tolerance, compare  # noqa: E402
from convert import ToGt, copy, gt_dtype, tensor_to_torch, tensors_in, walk  # noqa: E402

#: The factor of tolerances for modules, of many operations, over those for single operations.
WIDER = 10


def name_of(info: ModuleInfo) -> str:
    """Return the name of an entry's module."""
    return info.module_cls.__name__


def samples(info: ModuleInfo, dtype: torch.dtype, training: bool) -> Iterator[ModuleInput]:
    """Return the arguments and inputs of an entry; samples without inputs are skipped."""
    torch.manual_seed(0)
    given = info.module_inputs_func(
        info, device="cpu", dtype=dtype, requires_grad=True, training=training
    )
    return (sample for sample in given if sample.forward_input is not None)


def count(info: ModuleInfo, dtype: torch.dtype = torch.float32) -> int:
    """Return the number of samples of an entry, in training and in evaluation mode."""
    return sum(1 for training in (True, False) for _ in samples(info, dtype, training))


def check(info: ModuleInfo, dtype: torch.dtype = torch.float32) -> list[str]:
    """Compare all samples of an entry, and return the differences."""
    problems = []
    for training in (True, False):
        for sample in samples(info, dtype, training):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    check_sample(info, sample, dtype, training)
            except Exception as error:
                arguments = f"{sample.constructor_input.args} {sample.constructor_input.kwargs}"
                told = f"{type(error).__name__}: {error}".strip().splitlines()
                mode = "training" if training else "evaluation"
                problems.append(f"{name_of(info)} {arguments} {sample.desc} ({mode}): {told[0]}")
    return problems


def check_sample(info: ModuleInfo, sample: ModuleInput, dtype: torch.dtype, training: bool) -> None:
    """Compare one module and one call of it; raise if they differ."""
    made, called = sample.constructor_input, sample.forward_input
    theirs = info.module_cls(*made.args, **made.kwargs).to(dtype).train(training)
    convert = ToGt()
    make = getattr(gt.nn, name_of(info))
    ours = make(*converted(convert, made.args), **converted(convert, made.kwargs))
    ours = ours.to(gt_dtype(dtype)).train(training)
    same("text", repr(ours), repr(theirs))
    args, kwargs = copy(called.args), copy(called.kwargs)
    convert = ToGt()
    our_args, our_kwargs = convert(args), convert(kwargs)
    if info.is_lazy:
        with torch.no_grad(), gt.no_grad():
            theirs(*args, **kwargs)
            ours(*our_args, **our_kwargs)
    state = theirs.state_dict()
    same("names of the state", list(ours.state_dict()), list(state))
    ours.load_state_dict(copy(dict(state), grad=False))
    by_chance = _is_random(theirs, args, kwargs)
    theirs.load_state_dict({name: value.clone() for name, value in state.items()})
    ours.load_state_dict(state)
    wanted, given = theirs(*args, **kwargs), ours(*our_args, **our_kwargs)
    tolerance = Tolerance(info, WIDER)
    compare(given, wanted, tolerance, values=not by_chance)
    if not by_chance:
        _compare_gradients(theirs, ours, wanted, given, convert, tolerance.for_gradients())
        after = theirs.state_dict()
        for name, value in ours.state_dict().items():
            compare(value, after[name], tolerance)
    theirs.load_state_dict(
        {name: tensor_to_torch(value) for name, value in ours.state_dict().items()}
    )
    if sample.reference_fn is not None and not by_chance:
        reference = sample.reference_fn(theirs, *args, **kwargs)
        for one, other in zip(tensors_in(given, gt.Tensor), tensors_in(reference), strict=False):
            compare(one, other.to(dtype).reshape(tuple(one.shape)), tolerance)


def check_errors(info: ModuleInfo) -> list[str]:
    """Return the mistakes of an entry that raise errors in PyTorch but not in GT."""
    if info.module_error_inputs_func is None:
        return []
    silent = []
    for training in (True, False):
        mistakes = info.module_error_inputs_func(
            info, device="cpu", dtype=torch.float32, requires_grad=True, training=training
        )
        for mistake in mistakes:
            sample = mistake.module_error_input
            if _fails(info.module_cls, sample, training, lambda value: value):
                convert = ToGt()
                make = getattr(gt.nn, name_of(info))
                if not _fails(make, sample, training, partial(converted, convert)):
                    made = sample.constructor_input
                    silent.append(
                        f"{name_of(info)} {made.args} {made.kwargs}: {mistake.error_regex}"
                    )
    return silent


def _fails(make: Callable, sample: ModuleInput, training: bool, convert: Callable) -> bool:
    """Return whether constructing or calling a module raises an error."""
    made, called = sample.constructor_input, sample.forward_input
    try:
        module = make(*convert(made.args), **convert(made.kwargs)).train(training)
        given = module(*convert(called.args), **convert(called.kwargs))
        for tensor in tensors_in(given, (gt.Tensor, torch.Tensor)):
            tensor.tolist()
    except (ValueError, TypeError, RuntimeError, IndexError):
        return True
    return False


def converted(convert: ToGt, value):
    """Convert constructor arguments; objects of PyTorch become GT's of the same class name."""

    def leaf(item):
        if hasattr(item, "__dataclass_fields__"):
            names = item.__dataclass_fields__
            options = {name: convert(getattr(item, name)) for name in names}
            return getattr(gt.nn, type(item).__name__)(**options)
        if isinstance(item, torch.nn.TransformerEncoderLayer):
            heads, hidden = item.self_attn.num_heads, item.linear1.out_features
            sizes = (item.self_attn.embed_dim, heads, hidden, item.dropout.p)
            options = {
                "batch_first": item.self_attn.batch_first,
                "norm_first": item.norm_first,
                "bias": item.linear1.bias is not None,
            }
            return gt.nn.TransformerEncoderLayer(*sizes, convert(item.activation), **options)
        return convert(item)

    return walk(value, leaf)


def same(what: str, given: object, wanted: object) -> None:
    """Raise unless two values are equal."""
    if given != wanted:
        raise Different(f"{what}: {given!r}, PyTorch {wanted!r}")


def _is_random(module: torch.nn.Module, args: tuple, kwargs: dict) -> bool:
    """Return whether a module's result is random."""
    found = []
    with torch.no_grad():
        for seed in (1, 2):
            torch.manual_seed(seed)
            found.append(tensors_in(module(*copy(args, False), **copy(kwargs, False))))
    return not all(
        torch.equal(one.nan_to_num(), other.nan_to_num()) or module.training and _moves(module)
        for one, other in zip(*found, strict=True)
    )


def _moves(module: torch.nn.Module) -> bool:
    """Return whether a module has statistics that change with each call."""
    return any(True for _ in module.buffers()) and "Norm" in type(module).__name__


def _compare_gradients(theirs, ours, wanted, given, convert: ToGt, tolerance: Tolerance) -> None:
    """Compare the gradients of parameters and inputs for one gradient of the outputs."""
    wanted = [t for t in tensors_in(wanted) if t.requires_grad]
    given = [t for t in tensors_in(given, gt.Tensor) if t.requires_grad]
    same("number of outputs with gradients", len(given), len(wanted))
    if not wanted:
        return
    torch.manual_seed(3)
    factors = [torch.randn(t.shape, dtype=t.dtype) for t in wanted]
    sum((t * f).sum() for t, f in zip(wanted, factors, strict=True)).backward()
    ours_factors = [gt.tensor(f.numpy()) for f in factors]
    sum((t * f).sum() for t, f in zip(given, ours_factors, strict=True)).backward()
    pairs = [
        *zip(theirs.parameters(), ours.parameters(), strict=True),
        *((their, our) for their, our in convert.needing_grad() if their.is_leaf),
    ]
    for their, our in pairs:
        if their.grad is None:
            same("gradient", our.grad is None or not our.grad.count_nonzero().item(), True)
        else:
            compare(our.grad, their.grad, tolerance)


def table(results: dict[str, list[str]]) -> str:
    """Return a Markdown table of the results."""
    rows = ["| module | |", "| --- | --- |"]
    for name, problems in results.items():
        rows.append(f"| {name} | {'passes' if not problems else problems[0].replace('|', '/')} |")
    passed = sum(not problems for problems in results.values())
    rows += ["", f"**{passed} of {len(results)} entries pass.**"]
    return "\n".join(rows)


def main() -> None:
    """Check the chosen modules, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="modules, such as Linear; all by default")
    parser.add_argument("--dtype", default="float32", choices=("float32", "float64"))
    parser.add_argument("-v", "--verbose", action="store_true", help="print every difference")
    asked = parser.parse_args()
    chosen = [info for info in module_db if not asked.names or name_of(info) in asked.names]
    dtype = getattr(torch, asked.dtype)
    results = {name_of(info): check(info, dtype) for info in chosen}
    if asked.verbose:
        print("\n".join(problem for problems in results.values() for problem in problems))
    print(table(results))


if __name__ == "__main__":
    main()
