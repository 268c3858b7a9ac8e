"""Functions and methods of the operator database take arrays and tensors of PyTorch's."""

import os
import warnings

import pytest
from processes import embedded_only

pytest.importorskip("torch")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PyTorch's tests warn about missing optional packages
    import entries
    import foreign

pytestmark = [
    embedded_only,
    pytest.mark.skipif("GT_BACKEND" in os.environ, reason="arguments are compared on one engine"),
]

ENTRIES = {
    name: op
    for name, op in entries.entries().items()
    if name not in entries.EMPTY and not entries.not_intended(name)
}


@pytest.mark.parametrize("name", ENTRIES)
def test_arrays_stand_for_tensors(name):
    assert not foreign.check(ENTRIES[name])


def test_most_entries_are_compared():
    """A check that compares nothing cannot fail."""
    assert sum(foreign.compared(op) for op in list(ENTRIES.values())[::10]) > 200
