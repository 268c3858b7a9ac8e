"""Custom operations, which a user registers with an engine and declares in the program."""

import os
from pathlib import Path

import gt
import pytest
from processes import (
    PROGRAMS,
    cluster,
    embedded_only,
    one_engine_only,
    run_program,
    run_python,
)

FOLDERS = [str(Path(__file__).parent / "support"), *filter(None, [os.environ.get("PYTHONPATH")])]
ENVIRONMENT = {
    "GT_BACKEND": "numpy",
    "GT_KERNELS": "lab_kernels",
    "PYTHONPATH": os.pathsep.join(FOLDERS),
}

#: Declares the operation `scaled`, the function `same` and the tensor `x`.
START = (PROGRAMS / "custom_op" / "scaled.py").read_text()

pytestmark = [embedded_only, one_engine_only]


def run(code: str, **environment: str) -> str:
    done = run_python(START + code, **{**ENVIRONMENT, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_custom_operation_is_computed():
    assert run("print(scaled(x, factor=2.0).tolist(), scaled(x).tolist())") == (
        "[2.0, 4.0, 6.0] [1.0, 2.0, 3.0]\n"
    )


def test_attributes_of_each_kind():
    call = "whole=3, number=1.5, flag=True, word='é', places=(1, 2)"
    assert run(f"print(gt.custom_op('described', same)(x, {call}).tolist())") == "[1.0, 2.0, 3.0]\n"


def test_two_results():
    code = (
        "both = gt.custom_op('both', lambda x: [(x.dtype, x.shape), (gt.int64, x.shape[:-1])])\n"
        "more, place = both(x)\n"
        "print(more.tolist(), place.item(), place.dtype)\n"
    )
    assert run(code) == "[2.0, 3.0, 4.0] 2 gt.int64\n"


def test_a_training_loop():
    code = (
        "w = gt.ones(3, requires_grad=True)\n"
        "for step in range(100):\n"
        "    loss = scaled(w * x, factor=0.5).sum()\n"
        "    loss.backward()\n"
        "    with gt.no_grad(): w -= 0.01 * w.grad\n"
        "    w.grad = None\n"
        "print([round(value, 3) for value in w.tolist()])\n"
    )
    assert run(code) == "[0.5, 0.0, -0.5]\n"
    assert run(code, GT_COMPILE="1") == "[0.5, 0.0, -0.5]\n"


def test_the_gradient_is_correct():
    code = (
        "x = gt.tensor([0.5, 2.0], dtype=gt.float64, requires_grad=True)\n"
        "print(gt.autograd.gradcheck(lambda x: scaled(x * x, factor=3.0), (x,)))\n"
    )
    assert run(code) == "True\n"


def test_without_a_gradient_rule():
    code = (
        "y = gt.custom_op('one', same)(x.requires_grad_())\n"
        "try: y.sum().backward()\n"
        "except RuntimeError as error: print(error)\n"
    )
    assert "custom:one: there is no gradient rule" in run(code)


@pytest.mark.parametrize(
    ("name", "results", "words"),
    [
        ("short", "same", ["gave float32 (2,) for custom:short", "expected float32 (3,)"]),
        ("wide", "same", ["gave float64 (3,) for custom:wide"]),
        (
            "one",
            "lambda x: [same(x), same(x)]",
            ["gave 1 results for custom:one", "expected a tuple of 2"],
        ),
        ("missing", "same", ["no custom operation 'missing'", "'numpy'", "lab:scaled"]),
    ],
)
def test_wrong_kernels(name, results, words):
    code = (
        f"y = gt.custom_op({name!r}, {results})(x)\n"
        "y = y if isinstance(y, gt.Tensor) else y[0]\n"
        "try: print(y.tolist())\n"
        "except gt.WorkerError as error: print(error)\n"
        "print((x * 2).tolist())\n"
    )
    out = run(code)
    assert all(word in out for word in words), out
    assert out.endswith("[2.0, 4.0, 6.0]\n")


def test_the_native_engine_has_no_custom_operations():
    code = "try: scaled(x).tolist()\nexcept gt.WorkerError as error: print(error)\n"
    assert "'native' has no custom operations, as custom:lab:scaled" in run(
        code, GT_BACKEND="native"
    )


def test_with_workers(monkeypatch):
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with cluster(2) as (address, _):
        connect = f"import gt\ngt.connect({address!r})\n"
        done = run_python(connect + START + "print(scaled(x * 2, factor=2.0).tolist())")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[4.0, 8.0, 12.0]\n"


def test_a_sharding_rule_lets_workers_compute_their_shards():
    """The kernel returns the number of rows that it receives."""
    for rule, rows in (("b _ -> b _, b", 3), ("", 6)):
        done = run_program("custom_op/sharded", rule, **ENVIRONMENT)
        assert done.stdout == f"24.0 {[rows] * 6}\n", done


def test_explain_and_the_log_name_custom_operations(tmp_path):
    log = tmp_path / "log"
    code = "with gt.debug.explain() as plan:\n    scaled(x, factor=2.0)\nprint(plan)\n"
    out = run(code, GT_INSTRUCTION_LOG=str(log))
    assert "custom:lab:scaled" in out
    lines = [line for line in log.read_text().splitlines() if "op=custom:lab:scaled" in line]
    assert lines and 'arguments={"factor": 2.0}' in lines[0]


def test_bad_arguments():
    same = lambda x, **attributes: (x.dtype, x.shape)  # noqa: E731
    with pytest.raises(ValueError, match="name is 'two words'"):
        gt.custom_op("two words", same)
    with pytest.raises(TypeError, match="gradient is 3"):
        gt.custom_op("name", same, gradient=3)
    operation = gt.custom_op("name", same)
    x = gt.ones(2)
    with pytest.raises(TypeError, match="custom:name: operand 1 is a float"):
        operation(x, 1.0)
    with pytest.raises(TypeError, match="attribute 'a' is None"):
        operation(x, a=None)
    with pytest.raises(TypeError, match="no operands"):
        operation()
    for rule in ["b d", 3]:
        with pytest.raises(ValueError, match="custom:name: sharding is .*expected names of axes"):
            gt.custom_op("name", same, sharding=rule)
    with pytest.raises(ValueError, match="names an axis of a tensor twice"):
        gt.custom_op("name", same, sharding="b b -> b")
    with pytest.raises(ValueError, match="not those of another"):
        gt.custom_op("name", same, sharding="b d -> b d, d")
    with pytest.raises(ValueError, match=r"the tensors have \[1\] axes"):
        gt.custom_op("name", same, sharding="b d -> b d")(x)
    with pytest.raises(ValueError, match="axis of 2 and of 3 elements"):
        gt.custom_op("name", lambda x: (x.dtype, (3,)), sharding="b -> b")(x)
    with pytest.raises(TypeError, match="custom:name: results returned 7"):
        gt.custom_op("name", lambda x: 7)(x)
