"""Arguments of a wrong type: no public function answers with the words of Python or PyO3 alone."""

from __future__ import annotations

import importlib
import inspect
import re
import warnings
from collections.abc import Iterator
from typing import Any

import gt
import pytest
from processes import embedded_only, one_engine_only, unsharded_only

pytestmark = [embedded_only, unsharded_only, one_engine_only]

MODULES = (
    "gt gt.nn gt.nn.functional gt.nn.init gt.nn.utils gt.nn.utils.rnn gt.optim "
    "gt.optim.lr_scheduler gt.utils.data gt.linalg gt.fft gt.special gt.autograd gt.func "
    "gt.distributions"
).split()

#: Functions that connect, change the state of the process, do not return, or are exported by Rust.
OTHERS = re.compile(
    r"^(connect|disconnect|rescale|synchronize|workers|gpu_workers|save|load|load_config|compile"
    r"|step|progress|status|watch|set_\w+|use_deterministic\w*|manual_seed|seed|from_file|from_numpy"
    r"|load_state_dict_from_url|DataLoader|get_worker_info|register_\w+|custom_op)$"
)

#: Words that only Python and PyO3 use.
RAW = re.compile(
    r"object has no attribute|is not iterable|not supported between|bad operand|not callable"
    r"|could not convert|cannot be interpreted|is not subscriptable|unsupported operand"
    r"|is not an instance of|has no len\(\)|cannot be converted|invalid literal"
)
WRONG = ("a", None, 3, [1], object())

#: The number of calls that may still answer so; it only falls.
MOST = 31


def functions() -> Iterator[tuple[str, Any]]:
    """Return the public functions and classes with their names."""
    for name in MODULES:
        module = importlib.import_module(name)
        for own in getattr(module, "__all__", dir(module)):
            value = getattr(module, own, None)
            is_own = getattr(value, "__module__", None) not in ("typing", "gt._public")
            if own.startswith("_") or OTHERS.match(own) or not callable(value) or not is_own:
                continue
            if isinstance(value, type) and issubclass(value, (BaseException, gt.Tensor, tuple)):
                continue
            yield f"{name}.{own}", value


def fitting(parameter: inspect.Parameter) -> Any:
    """Return a value that fits a parameter, by its annotation and its name."""
    kind, name = str(parameter.annotation), parameter.name
    if name in ("params", "parameters"):
        return [gt.nn.Parameter(gt.ones(2))]
    if name == "optimizer":
        return gt.optim.SGD([gt.nn.Parameter(gt.ones(2))], lr=0.1)
    if "Callable" in kind:
        return lambda *args: args[0]
    if "Module" in kind or name in ("module", "conv", "linear", "bn"):
        return gt.nn.Linear(2, 2)
    if name in ("sequence", "parts"):
        return {
            "sequence": gt.nn.utils.rnn.pack_sequence([gt.ones(2)]),
            "parts": [gt.distributions.ExpTransform()],
        }[name]
    if "Sequence[Tensor]" in kind or name == "tensors":
        return [gt.ones(2, 2)]
    if "Tensor" in kind:
        return gt.ones(2, 2)
    if "bool" in kind:
        return True
    if "int" in kind or "Size" in kind or "Dims" in kind:
        return 1
    if "float" in kind or "Number" in kind:
        return 0.5
    return "mean" if "str" in kind else gt.ones(2, 2)


def answers(name: str, function: Any) -> Iterator[str]:
    """Return the raw messages of a function that gets one argument of a wrong type at a time."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:
        return
    parameters = [of for of in parameters if of.kind is not of.VAR_KEYWORD]
    required = [of for of in parameters if of.default is of.empty]
    for wrong in parameters:
        for value in WRONG:
            if value is wrong.default:
                continue
            args, kwargs = [], {}
            for of in {of.name: of for of in [*required, wrong]}.values():
                given = value if of is wrong else fitting(of)
                if of.kind in (of.POSITIONAL_ONLY, of.VAR_POSITIONAL):
                    args.append(given)
                else:
                    kwargs[of.name] = given
            try:
                function(*args, **kwargs)
            except Exception as error:
                if RAW.search(str(error)):
                    yield f"{name}({wrong.name}={value!r}): {type(error).__name__}: {error}"


@pytest.mark.filterwarnings("ignore")
def test_arguments_of_a_wrong_type_are_explained():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [text for name, function in functions() for text in answers(name, function)]
    assert len(list(functions())) > 900
    assert len(found) <= MOST, "\n".join(found)
