"""The check of engines: GT's engines pass, and faults of others are reported."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from gt.engines.check import check
from gt.engines.check.cases import cases_of
from gt.engines.check.operations import Examiner
from gt.engines.check.reference import Reference
from gt.engines.check.samples import OPERATIONS
from gt.engines.check.tasks import names
from gt.engines.native import DRAWN

#: Engine -> (maximum number of cases per operation, n to check every nth operation).
AMOUNTS = {
    "numpy": (None, 1),
    "pytorch": (20, 1),
    # JAX compiles each case; the plan "everything" has all operations.
    "jax": (2, 4),
}
COMPOSITES = set(
    "var std softmax log_softmax logsumexp gelu silu softplus "
    "running_mean running_square adam_step commit "
    "layer_norm layer_norm_backward layer_norm_weight_backward "
    "weight_backward softmax_backward log_softmax_backward gelu_backward".split()
)
WITHOUT_SPEED = [name for name in names() if name != "speed"]
COMMAND = [sys.executable, "-m", "gt.engines.check"]
HERE = str(Path(__file__).parent)


@pytest.mark.timeout(300)
def test_what_gt_brings_along_is_fine(engine):
    samples, share = AMOUNTS[engine.name]
    skipped = {name for place, name in enumerate(sorted(OPERATIONS)) if place % share}
    only = [name for name in WITHOUT_SPEED if name not in skipped]
    report = check(engine.name, samples=samples, only=only)
    assert report.ok and not report.findings, str(report)
    assert set(report.expanded) <= COMPOSITES
    assert len(report.compiled) == (0 if engine.name == "numpy" else 7)


def test_the_reference_is_as_good_as_itself():
    report = check(Reference, only=WITHOUT_SPEED)
    assert report.ok and not report.findings, str(report)
    left = DRAWN | {"further"} | set(report.expanded)
    assert set(report.cases) == set(OPERATIONS) - left


def test_exact_form_of_pytorch():
    """Compiled plans use the exact form; so do single operations without a fast lowering."""
    pytest.importorskip("torch", reason="pytorch: make test-all")
    from gt.engines.pytorch import PyTorchEngine

    engine, found = PyTorchEngine("cpu"), []
    engine.lowering = engine.exact
    examiner = Examiner(engine, found.append, lambda text: None)
    for operation in sorted(set(OPERATIONS) - DRAWN - {"further"}):
        for case in cases_of(operation, 20):
            if case.plain and engine.lowers(operation):
                examiner.examine(case)
    # Requirements on values are recorded for the caller, so invalid values raise nothing here.
    assert [fault for fault in found if fault.kind == "wrong"] == []


#: Operation with a fault in tests/engines/bad_engines.py -> kind and text of the finding.
FAULTS = {
    "tanh": ("warning", "keeps an operand"),
    "exp": ("warning", "keeps a result"),
    "neg": ("wrong", "writes to an operand"),
    "abs": ("wrong", "a tensor that a later call changes"),
    "log1p": ("wrong", "has not come back for 1 s"),
    "asin": ("wrong", "ends the process: exit status 9"),
    "acos": ("wrong", "SIGABRT"),
    "atan": ("wrong", "raises SystemExit, which is no error"),
    "sin": ("warning", "prints: hello"),
    "sqrt": ("warning", "forks"),
    "relu": ("wrong", "returns None"),
    "floor": ("wrong", "is float32 (2, 6), expected float32 (2, 7)"),
    "expm1": ("wrong", "is float64"),
    "sort": ("wrong", "returns 1 results, expected 2"),
    "topk": ("wrong", "returns ndarray, expected a tuple of 2"),
    "add": ("wrong", ", expected "),
    "ceil": ("missing", "NotImplementedError: there is none"),
    "index_select": ("wrong", "expected: index 3 is out of range for an axis of length 3"),
    "maximum": ("wrong", "special values"),
}


@pytest.fixture(scope="module")
def faulty():
    only = ["values", *FAULTS, "mul", "plan: several results"]
    return check("bad_engines:Faulty", only=only, limit=1)


@pytest.mark.parametrize("operation", FAULTS)
def test_a_fault_is_told(faulty, operation):
    kind, words = FAULTS[operation]
    told = [found for found in faulty.of(kind) if found.name == operation]
    assert any(words in f"{found.text} on {found.case}" for found in told), str(faulty)


def test_what_is_fine_is_not_told(faulty):
    assert not faulty.ok and faulty.cases["mul"] > 50
    assert {found.name for found in faulty.findings} == {*FAULTS, "plan: several results"}


def test_an_engine_that_cannot_be_made():
    for name, words in [("bad_engines:NotMade", "unavailable"), ("nmpy", "did you mean")]:
        (found,) = check(name).findings
        assert (found.kind, found.name) == ("wrong", "load") and words in found.text


def test_a_compiler_that_is_wrong():
    report = check("bad_engines:BadCompiler", only=["plan: training"])
    (found,) = report.findings
    assert found.text.startswith("output 0 (of sum) is ") and found.case == "compiled"
    report = check("bad_engines:NoCompiler", only=["plan: training"])
    assert "the compiler is unavailable" in report.findings[0].text


def test_what_is_slow_is_told():
    report = check("bad_engines:Slow", only=["speed"])
    assert "exp, 1000x1000" in report.slow and "add, 1000x1000" not in report.slow, str(report)


def test_the_command(tmp_path):
    file = tmp_path / "report.json"
    command = [*COMMAND, "numpy", "--only", "add,plan: numbers", "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.endswith("ok\n"), done.stderr
    report = json.loads(file.read_text())
    assert report["ok"] and report["cases"] == {"add": len(cases_of("add"))}
    command = [*COMMAND, "bad_engines:Raising", "--only", "tanh", "--samples", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=HERE)
    assert done.returncode == 1 and "'missing' is not defined" in done.stdout, done.stderr
    done = subprocess.run([*COMMAND, "numpy", "--only", "ad"], capture_output=True, text=True)
    assert done.returncode == 2 and "there is nothing named 'ad'" in done.stderr
    done = subprocess.run([*COMMAND, "--list"], capture_output=True, text=True)
    assert [line.split("  ")[0] for line in done.stdout.splitlines()] == names()


def test_an_engine_itself_is_checked_in_this_process():
    report = check(Reference(), only=["values", "add", "plan: numbers"])
    assert report.ok and report.cases == {"add": len(cases_of("add"))}, str(report)
    with pytest.raises(ValueError, match="there is nothing named 'ad' to check"):
        check(Reference(), only=["ad"])
