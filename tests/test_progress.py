"""`gt.progress`: a bar with values that does not delay its loop."""

import io

import gt
from processes import embedded_only, one_engine_only, run_program

pytestmark = [embedded_only, one_engine_only]


def test_a_progress_bar_shows_values_without_delaying_the_loop():
    drawn = io.StringIO()
    bar = gt.progress(range(5), every=0, file=drawn, mininterval=0)
    assert len(bar) == 5
    for step in bar:
        bar.show(loss=gt.tensor(step / 4.0, requires_grad=True) * 1, step=step)
    assert "5/5" in drawn.getvalue() and "loss=1" in drawn.getvalue()

    silent = gt.progress(range(3), disable=True)
    for _ in silent:
        silent.show(loss=gt.ones(3))  # Not a scalar: fetching it would raise.


def test_a_progress_bar_ends_with_the_last_values():
    drawn = io.StringIO()
    bar = gt.progress(range(5), file=drawn)
    for step in bar:
        bar.show(loss=step)
    assert "5/5" in drawn.getvalue() and "loss=4" in drawn.getvalue()
    bar = gt.progress(range(5), file=io.StringIO())
    for _ in bar:
        bar.show(loss=gt.ones(3))  # Not a scalar, but a loop that ends early fetches nothing.
        break


def test_a_missing_tqdm_is_reported():
    done = run_program("progress/without_tqdm")
    assert done.stdout == "gt.progress needs the package tqdm\n  hint: pip install tqdm\n", done
