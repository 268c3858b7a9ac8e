"""The HTML of GT's objects, which notebooks show: plain, escaped, and of bounded length."""

import copy
import doctest
import importlib
import subprocess
import sys

import gt
import pytest
from gt._display import html
from gt.explain import Move, Placed, Step
from markup import read, texts_of
from processes import embedded_only, one_engine_only, unsharded_only

pytestmark = [embedded_only, one_engine_only]

HOSTILE = """</td></table><script>alert('1')</script><img src=x onerror="alert(2)">&lt;&#60;$x$"""


def test_texts_are_escaped_and_cut():
    table = html.table([HOSTILE], [[HOSTILE]], 1)
    page = html.page(html.paragraph(HOSTILE), html.block(HOSTILE), table)
    assert texts_of(page) == [HOSTILE] * 4
    (cut,) = texts_of(html.page(html.paragraph("<" * 100_000)))
    assert cut == "<" * (html.CELL - 1) + "…"
    (cut,) = texts_of(html.page(html.block("<" * 100_000)))
    assert cut == "<" * (html.BLOCK - 1) + "…"
    assert "<i>" not in html.image(b"", '"><i>')


def test_a_long_table_has_its_first_rows_and_the_count():
    def rows():
        for number in range(10**9):
            assert number < 1000, "more rows are made than shown"
            yield [f"row {number}"]

    texts = texts_of(html.page(html.table(["name"], rows(), 10**9, "rows")))
    assert texts[1] == "row 0" and texts[-2] == f"row {html.ROWS - 1}"
    assert texts[-1] == "the first 100 of 1,000,000,000 rows"
    assert texts_of(html.page(html.table(["name"], [["one"]], 1))) == ["name", "one"]
    assert texts_of(html.page(html.table(["name"], [], 0))) == ["name"]


def test_numbers_stand_below_each_other():
    rows = [["1 s", "-", "a"], ["-", "-", "1"]]
    table = html.table(["x", "y", "z"], rows, 2)
    assert table.count("text-align:right") == 3


@unsharded_only
def test_the_status_of_many_sessions_with_hostile_names():
    gt.ones(2).sum().item()
    status = gt.status()
    (session, *_) = status.sessions
    other = {**session, "name": HOSTILE, "waits_for": HOSTILE, "behind": [HOSTILE]}
    status.sessions = [copy.deepcopy(other) for _ in range(1000)]
    status.workers[0].update(name=HOSTILE, engine=HOSTILE)
    status.users = [{**status.users[0], "user": HOSTILE, "team": HOSTILE}] * 1000
    status.teams = [{**status.teams[0], "team": HOSTILE}]
    page = status._repr_html_()
    texts = texts_of(page)
    assert texts.count(HOSTILE) > 2 * html.ROWS and len(page) < 500_000
    assert "the first 100 of 1,000 sessions" in texts
    assert "the first 100 of 1,001 users and teams" in texts
    assert repr(status).count("\n") > 2000


def test_a_session_with_a_hostile_name():
    name = "<script>alert(1)</script> $x$"
    with gt.Session(workers=1, name=name):
        texts = texts_of(gt.status()._repr_html_())
    assert any(text.startswith(name) for text in texts), texts


@unsharded_only
def test_a_tensor_shows_its_text_its_size_and_nothing_more():
    x = gt.arange(12, dtype="float32").reshape(3, 4).requires_grad_()
    shown = x._repr_mimebundle_()
    assert shown["text/plain"] == repr(x)
    heading, values = texts_of(shown["text/html"])
    assert heading == "float32 tensor, 3 × 4 = 12 elements, 48 B, requires a gradient"
    assert values == repr(x)
    assert texts_of(gt.tensor(1.5)._repr_mimebundle_()["text/html"]) == [
        "float32 tensor, one element, 4 B",
        "tensor(1.5, dtype=float32)",
    ]
    assert "0 elements" in gt.zeros(0, 3)._repr_mimebundle_()["text/html"]
    parameter = gt.nn.Parameter(gt.ones(2))
    assert parameter._repr_mimebundle_()["text/plain"] == repr(parameter)


@unsharded_only
def test_a_large_tensor_is_summarized_and_fetched_once():
    def operations():
        stats = gt.debug.get_worker_stats().values()
        return sum(worker["operations"]["total"] for worker in stats)

    x = gt.arange(1_000_000).reshape(1000, 1000)
    before = operations()
    text = repr(x)
    for_repr = operations() - before
    shown = x._repr_mimebundle_()
    assert operations() - before == 2 * for_repr
    assert shown["text/plain"] == text and len(shown["text/html"]) < 2000


@unsharded_only
def test_a_tensor_without_a_value_shows_the_error_with_its_line():
    bad = gt.ones(3)[gt.tensor([5], dtype="int64")]
    with pytest.raises(gt.WorkerError) as raised:
        repr(bad)
    shown = bad._repr_mimebundle_()
    assert shown["text/plain"] == f"WorkerIndexError: {raised.value}"
    assert texts_of(shown["text/html"])[1] == shown["text/plain"]
    assert "test_display.py:" in shown["text/plain"]


def test_a_subclass_may_have_html_of_its_own():
    class Picture(gt.Tensor):
        def _repr_html_(self):
            return "<b>mine</b>"

    shown = Picture(gt.ones(2))._repr_mimebundle_()
    assert set(shown) == {"text/plain"}


def test_the_tape():
    x = gt.ones(2, requires_grad=True)
    y = (x * 2).exp()
    tape = gt.debug.get_tape()
    assert isinstance(tape, list) and repr(tape) == repr([*tape])
    texts = texts_of(tape._repr_html_())
    assert {"mul", "exp", "float32 (2,)"} <= set(texts), texts
    del y
    entry = {**tape[0], "op": HOSTILE, "inputs": [HOSTILE], "signal": HOSTILE}
    page = gt.debug.Tape([entry] * 1_000_000)._repr_html_()
    assert texts_of(page).count(HOSTILE) == 3 * html.ROWS and len(page) < 200_000
    assert "the first 100 of 1,000,000 operations" in page


@unsharded_only
def test_an_explanation():
    with gt.debug.explain(quiet=True) as explanation:
        (gt.ones(2) * 3).sum().item()
    texts = texts_of(explanation._repr_html_())
    assert {"mul", "sum"} <= set(texts) and any("test_display.py:" in text for text in texts)
    assert texts[-2].startswith("3 operations, 0 moves")
    placed = Placed(HOSTILE, (1,), HOSTILE, [0])
    move = Move(HOSTILE, 1, placed, placed, HOSTILE)
    step = Step(HOSTILE, HOSTILE, [placed], placed, [move])
    explanation.steps, explanation.slots = [step] * 10_000, [HOSTILE, HOSTILE]
    page = explanation._repr_html_()
    assert read(page).seen == {"div", "p", "table", "thead", "tbody", "tr", "th", "td"}
    assert len(page) < 500_000 and "the first 100 of 10,000 operations" in texts_of(page)


def test_a_plan_is_printed_outside_of_notebooks(capsys):
    with gt.debug.explain() as explanation:
        gt.ones(2).sum().item()
    assert capsys.readouterr().out == f"{explanation}\n"


@unsharded_only
@pytest.mark.parametrize("name", ["_display.html", "_display.sizes", "session.watch"])
def test_examples(name):
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    module = importlib.import_module(f"gt.{name}")
    done = doctest.testmod(module, extraglobs={"gt": gt}, optionflags=options)
    assert done.attempted and not done.failed


def test_gt_does_not_import_ipython():
    code = "import sys, gt; gt.status()._repr_html_(); print('IPython' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "False\n"), done
