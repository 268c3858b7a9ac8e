"""Wrong arguments of compiled functions: errors name the call, what is given and expected."""

import inspect
import operator
import re

import gt
import numpy as np
import pytest
from processes import embedded_only

pytestmark = embedded_only

#: How PyO3 refuses an argument.
WORDS = re.compile(
    r"while processing|not an instance of|cannot be interpreted as an|gt\._gt"
    r"|Can't extract|must be real number"
)

WRONG = ("a", object(), 3.5, None, [object()], {}, 10**30, (1, "a"), True, 1j, np.ones(2))

#: Python converts what it gets itself, or calls them with arguments of its own.
EXCEPT = {"__format__", "_assign", "_become", "_cast", "_restride", "_view", "_view_at"}


def refusals(call, names, args):
    """Return the texts of errors for wrong arguments that PyO3 writes."""
    for wrong in WRONG:
        calls = [((*args, wrong), {}), ((*args, wrong, wrong), {})]
        calls += [(args, {name: wrong}) for name in names]
        for given, named in calls:
            try:
                call(*given, **named)
            except Exception as error:
                text = "\n".join([str(error), *getattr(error, "__notes__", [])])
                if WORDS.search(text):
                    yield text


def parameters(function):
    try:
        return [name for name in inspect.signature(function).parameters if name != "self"]
    except ValueError:
        return []


COMPILED = type(len)
#: They would end the session of the tests, or change it.
SESSIONS = ("connect", "disconnect", "rescale", "synchronize")
FUNCTIONS = {
    f"{module.__name__}.{name}": function
    for module in (gt, gt.special, gt.nn.functional)
    for name, function in vars(module).items()
    if isinstance(function, COMPILED) and name not in SESSIONS and not name.startswith("_")
}
METHODS = {
    name: method
    for name, method in vars(gt.Tensor).items()
    if type(method).__name__ == "method_descriptor" and name not in EXCEPT
}
ATTRIBUTES = {
    name
    for name, attribute in vars(gt.Tensor).items()
    if type(attribute).__name__ == "getset_descriptor"
}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions_say_what_they_expect(name):
    function = FUNCTIONS[name]
    for args in ((), (gt.ones(2, 2),)):
        assert not list(refusals(function, parameters(function), args))


@pytest.mark.parametrize("name", sorted(METHODS))
def test_methods_say_what_they_expect(name):
    method = METHODS[name]
    for args in ((), (0,)):
        tensor = gt.ones(2, 2, requires_grad=True)
        assert not list(refusals(method, parameters(method), (tensor, *args)))


@pytest.mark.parametrize("name", sorted(ATTRIBUTES))
def test_attributes_say_what_they_expect(name):
    assert not list(refusals(lambda value: setattr(gt.ones(2), name, value), (), ()))


@pytest.mark.parametrize("name", ["insecure", "slots", "elastic", "name", "key_file"])
def test_connect_says_what_it_expects(name):
    with pytest.raises(TypeError, match=f"^connect: (the |argument ')?{name.replace('_', ' ')}"):
        gt.connect("localhost:1", **{name: []})
    if name == "key_file":
        return
    with pytest.raises(TypeError, match=f"^Session: (argument ')?{name}"):
        gt.Session(**({"address": "localhost:1"} if name == "insecure" else {}), **{name: []})


@pytest.mark.parametrize("name", ["slots", "elastic"])
def test_rescale_says_what_it_expects(name):
    with pytest.raises(TypeError, match=f"^rescale: argument '{name}' must be .*, not str 'a'$"):
        gt.rescale(**{name: "a"})
    with pytest.raises(TypeError, match=f"^rescale: argument '{name}' must be .*, not str 'a'$"):
        gt.current_session().rescale(**{name: "a"})


@pytest.mark.parametrize("name", ["disconnect", "synchronize", "is_grad_enabled"])
def test_functions_without_arguments_are_named_as_they_are_called(name):
    with pytest.raises(TypeError, match=rf"^gt\.{name}\(\) takes no arguments \(1 given\)$"):
        getattr(gt, name)(3)


@pytest.mark.parametrize("given", [[1], 3, 1.5, "a", np.float32(1), gt.ones(1)], ids=repr)
def test_from_numpy_takes_arrays_alone(given):
    torch = pytest.importorskip("torch")
    for lib in (gt, torch):
        with pytest.raises(TypeError, match=r"expected np.ndarray \(got \w+"):
            lib.from_numpy(given)


SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%",
    "pow": "** or pow()",
    "matmul": "@", "and_": "&", "or_": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
}  # fmt: skip


#: Operators that sequences have themselves.
OWN = {(name, kind) for name in ("add", "mod") for kind in ("str", "bytes", "tuple")}


class Other:
    """An object without operators."""


@pytest.mark.parametrize("tensor", [gt.ones(2), gt.ones(2, dtype=gt.int64)], ids=["float", "int"])
@pytest.mark.parametrize(
    "other", ["a", (1, 2), b"a", None, Other(), {}], ids=lambda it: type(it).__name__
)
@pytest.mark.parametrize("name", SYMBOLS)
def test_operators_refuse_objects_that_are_no_operands(name, other, tensor):
    act, kind = getattr(operator, name), type(other).__name__
    with pytest.raises(TypeError) as caught:
        act(tensor, other)
    expected = f"unsupported operand type(s) for {SYMBOLS[name]}: 'gt.Tensor' and '{kind}'"
    assert str(caught.value) == expected
    # Strings have operators `+` and `%` of their own, and tuples have `+`.
    if (name, kind) not in OWN:
        with pytest.raises(TypeError) as caught:
            act(other, tensor)
        assert str(caught.value) == expected.replace(
            f"'gt.Tensor' and '{kind}'", f"'{kind}' and 'gt.Tensor'"
        )
    # In place, too.
    in_place = getattr(operator, f"i{name.rstrip('_')}")
    with pytest.raises(TypeError, match="^unsupported operand type"):
        in_place(tensor.clone(), other)


def test_an_integer_repeats_a_sequence_as_in_pytorch():
    torch = pytest.importorskip("torch")
    for lib in (gt, torch):
        two = lib.tensor(2, dtype=lib.int64)
        assert two * "ab" == "ab" * two == "abab"
        assert (1,) * two == (1, 1)


def test_another_class_may_define_the_operator():
    class Own(str):
        def __rmul__(self, left):
            return "own"

        def __rlshift__(self, left):
            return "own"

    assert gt.ones(2) * Own("a") == "own"
    assert gt.ones(2) << Own("a") == "own"
