"""The tables and the page that list which entries pass."""

import re
import textwrap

import kinds
from compare import TOLERANCE
from entries import GROUPS, LEFT_OUT, WITHOUT_FLOAT32

# The reasons that an operation itself, or one of its methods, is missing.
_MISSING = re.compile(r"(sample \d+: )?gt\.\S+ is missing$")
_FORM = re.compile(r"(?:sample \d+: )?method missing: Tensor\.(\w+)$")

# The dtypes whose results are rounded.
_FRACTIONS = ("float64", "float32", "bfloat16", "float16")

COMMAND = "python tests/coverage/run.py --write docs/coverage.md"

_PAGE = """# Coverage of PyTorch's operators, modules and optimizers

PyTorch tests its operators with a database: for each entry it has samples of arguments. GT runs
the same samples. **{passed} of {total} entries pass.**

{table}

The last row is not part of the count: entries that do not accept float32, checked with integers,
bools or complex numbers.
{left_out}

## With other dtypes

The entries that pass with float32 are checked with the other dtypes that PyTorch supports, and with
float64 for gradients of gradients, where PyTorch has them:

{kinds}

## What passing means

An entry passes if GT agrees with PyTorch on every sample that PyTorch runs with a dtype on a CPU:

- in values, dtypes and shapes of all results, within a tolerance, or up to ten times that where the
  database allows more; float32 results of large terms that cancel may differ more if they are about
  as close to PyTorch's own float64 result as its float32 result is, up to a factor of four;
- in gradients of all arguments that have them, for random gradients of the results, within ten
  times that;
- in arguments that the operation writes to, such as running averages.

{tolerances}

The method and the in-place method, `x.exp()` and `x.exp_()`, have to exist where PyTorch has them,
and to return the same. Random results are compared by shape, dtype and distribution, and the same
seed has to yield the same numbers twice; results of `empty` and similar functions by shape and
dtype. Where several results are right, such as the signs of eigenvectors, the ambiguity is removed
as the database does; where the order of equal values is unspecified, as in `sort`, the values at
the indices are compared.

Gradients of gradients are compared for up to {samples} samples of each entry: with respect to all
arguments, and to the random gradients of the results.

## How to run it

```
{command}
```

This checks everything, with PyTorch and SciPy installed, and writes this page; with
`--tables modules optimizers` it checks only these, and keeps the rest of the page. It also writes
`tests/coverage/passing/`: entries listed there have to pass in `make test-all`, which checks all
entries with float32, and one in {parts} of the other checks, selected by `GT_COVERAGE_SEED`.

## What does not pass
"""


def table(results: list[dict]) -> str:
    """Return a table of all groups, in Markdown."""
    lines = ["| group | entries | pass |", "| --- | ---: | ---: |"]
    for name in GROUPS:
        lines.append(_line(name, [r for r in results if r["group"] == name]))
    counted = [r for r in results if r["group"] != WITHOUT_FLOAT32]
    lines.append(_line("**all**", counted))
    lines.append(_line(WITHOUT_FLOAT32, [r for r in results if r["group"] == WITHOUT_FLOAT32]))
    return "\n".join(line for line in lines if line)


def _line(name: str, results: list[dict]) -> str:
    return f"| {name} | {len(results)} | {len(_passing(results))} |" if results else ""


def _passing(results: list[dict]) -> list[str]:
    return [result["name"] for result in results if not result["reasons"]]


def failures(results: list[dict], reasons: int = 1) -> str:
    """Return all failing entries with their first reasons, a line for each."""
    failing = [result for result in results if result["reasons"]]
    return "\n".join(
        f"{result['name']}: " + "\n    ".join(result["reasons"][:reasons]) for result in failing
    )


def passing(results: list[dict]) -> str:
    """Return the names of all entries that pass, a line for each."""
    return "".join(f"{name}\n" for name in sorted(_passing(results)))


def _tolerances() -> str:
    """Return the sentence about tolerances."""
    each = (f"{TOLERANCE[kinds.dtype_of(name)][0]:.0e} for {name}" for name in _FRACTIONS)
    return _wrapped(f"The tolerance, relative and absolute, is {', '.join(each)}.").rstrip()


def table_of_kinds(by_kind: dict[str, list[dict]]) -> str:
    """Return a table of all kinds but the first: how many entries that pass the first pass each."""
    lines = ["| checked | entries | pass | |", "| --- | ---: | ---: | ---: |"]
    for kind in kinds.KINDS[1:]:
        results = _of_passing(by_kind, kind)
        passed = len(_passing(results))
        share = f"{100 * passed / len(results):.1f} %"
        lines.append(f"| {kinds.title(kind)} | {len(results)} | {passed} | {share} |")
    return "\n".join(lines)


def _of_passing(by_kind: dict[str, list[dict]], kind: str) -> list[dict]:
    """Return the results of a kind for the entries that pass the first kind."""
    passing = set(_passing(by_kind[kinds.KINDS[0]]))
    return [result for result in by_kind[kind] if result["name"] in passing]


def page(by_kind: dict[str, list[dict]]) -> str:
    """Return the page of the documentation."""
    results = by_kind[kinds.KINDS[0]]
    counted = [result for result in results if result["group"] != WITHOUT_FLOAT32]
    left_out = ", ".join(f"`{name}` ({why})" for name, why in LEFT_OUT.items())
    text = _PAGE.format(
        passed=len(_passing(counted)),
        total=len(counted),
        table=table(results),
        left_out=_wrapped(f"Left out are {left_out}.").rstrip(),
        kinds=table_of_kinds(by_kind),
        tolerances=_tolerances(),
        samples=kinds.SECOND_SAMPLES,
        parts=kinds.PARTS,
        command=COMMAND,
    )
    for group in (*GROUPS, WITHOUT_FLOAT32):
        text += _section(group, [r for r in results if r["group"] == group and r["reasons"]])
    for kind in kinds.KINDS[1:]:
        failing = [result for result in _of_passing(by_kind, kind) if result["reasons"]]
        text += _section(f"{kinds.title(kind)}, of the entries that pass with float32", failing)
    return text


def _section(group: str, failing: list[dict]) -> str:
    """Return the failures of a group or a dtype: missing entries, and the others with reasons."""
    if not failing:
        return ""
    missing, others, forms = [], [], []
    for result in failing:
        kind = {_MISSING: missing, _FORM: forms}
        reason = result["reasons"][0]
        next((to for pattern, to in kind.items() if pattern.match(reason)), others).append(result)
    parts = [f"\n### {group}\n"]
    parts += _listed("Missing", missing, lambda result: f"`{result['name']}`")
    parts += _listed("Only a method is missing", forms, _form)
    if others:
        parts.append("| entry | reason |\n| --- | --- |")
        parts += [f"| `{r['name']}` | {cell(r['reasons'][0])} |" for r in others]
        parts.append("")
    return "\n".join(parts)


def _listed(title: str, results: list[dict], show) -> list[str]:
    return [_wrapped(f"{title}, {len(results)}: {', '.join(map(show, results))}.\n")] * bool(
        results
    )


def _wrapped(text: str) -> str:
    lines = textwrap.wrap(text, 118, break_on_hyphens=False, break_long_words=False)
    return "\n".join(lines) + "\n"


def _form(result: dict) -> str:
    """Return an entry with the method that GT lacks."""
    method = _FORM.match(result["reasons"][0])[1]
    name = result["name"]
    return f"`{name}`" if method == name else f"`{name}` (`{method}`)"


def cell(text: str) -> str:
    """Return a text escaped for a cell of a table."""
    for one, other in (("&", "&amp;"), ("<", "&lt;"), ("|", "\\|"), ("*", "\\*"), ("_", "\\_")):
        text = text.replace(one, other)
    return text
