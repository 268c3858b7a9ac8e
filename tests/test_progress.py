"""`gt.progress`: a bar with values that does not hold up its loop."""

import io

import gt
from processes import embedded_only, one_engine_only, run_python

pytestmark = [embedded_only, one_engine_only]


def test_a_progress_bar_shows_values_without_holding_up_the_loop():
    drawn = io.StringIO()
    bar = gt.progress(range(5), every=0, file=drawn, mininterval=0)
    assert len(bar) == 5
    for step in bar:
        bar.show(loss=gt.tensor(step / 4.0, requires_grad=True) * 1, step=step)
    assert "5/5" in drawn.getvalue() and "loss=1" in drawn.getvalue()

    silent = gt.progress(range(3), disable=True)
    for _ in silent:
        silent.show(loss=gt.ones(3))  # No single number: fetching it would be an error.


def test_a_progress_bar_ends_with_the_last_values():
    drawn = io.StringIO()
    bar = gt.progress(range(5), file=drawn)
    for step in bar:
        bar.show(loss=step)
    assert "5/5" in drawn.getvalue() and "loss=4" in drawn.getvalue()
    bar = gt.progress(range(5), file=io.StringIO())
    for _ in bar:
        bar.show(loss=gt.ones(3))  # No single number: but a loop that is left fetches nothing.
        break


def test_a_progress_bar_says_what_it_needs():
    code = """
import sys
sys.modules["tqdm"] = sys.modules["tqdm.auto"] = None
import gt
try:
    gt.progress([])
except ImportError as error:
    print(error)
"""
    done = run_python(code)
    assert done.stdout == "gt.progress needs the package tqdm\n  hint: pip install tqdm\n", done
