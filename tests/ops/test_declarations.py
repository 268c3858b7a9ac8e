"""Every operation has its functions and methods, documentation, and examples that hold."""

import doctest
import inspect
import os

import gt
import pytest
from gt import _gt
from gt.engines.check.samples import OPERATIONS
from gt.ops.registry import COMPOSITES
from processes import embedded_only

#: The bits of an operation's declared face: a function, a method.
FUNCTION, METHOD = 1, 2

#: Each composite once, without aliases, which share its documentation.
NAMES = sorted(
    {
        of: name
        for name, of in reversed(COMPOSITES.items())
        if inspect.isfunction(inspect.unwrap(of))
    }.values()
)


@pytest.mark.parametrize("name", NAMES)
def test_a_composite_is_documented(name):
    function = COMPOSITES[name]
    text = inspect.getdoc(function)
    assert text and text[0].isupper(), "a docstring that begins with a sentence"
    first = text.split("\n\n")[0]
    assert first.rstrip().endswith((".", ":")), first


@embedded_only
@pytest.mark.skipif("GT_BACKEND" in os.environ, reason="the last digits are the native engine's")
def test_examples_give_what_they_say():
    """Each example runs after the same seed, as some draw random numbers."""
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    finder = doctest.DocTestFinder(recurse=False)
    for name in NAMES:
        gt.manual_seed(0)
        function = inspect.unwrap(COMPOSITES[name])
        for test in finder.find(function, name, globs={"gt": gt}):
            runner.run(test)
    assert runner.failures == 0


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_a_primitive_has_the_faces_that_it_declares(name):
    operation = OPERATIONS[name]
    assert operation["doc"] and operation["samples"]
    function = getattr(_gt.primitives, name)
    assert list(inspect.signature(function).parameters) == list(operation["kinds"])
    if operation["face"] & FUNCTION:
        assert callable(getattr(gt, name)), name
    if operation["face"] & METHOD:
        assert callable(getattr(gt.Tensor, name)) and getattr(gt.Tensor, name).__doc__
