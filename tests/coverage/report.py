"""The tables and the page that say which entries pass."""

import re
import textwrap

from entries import GROUPS, LEFT_OUT, WITHOUT_FLOAT32

# The operation itself is missing, or one of its methods is.
_MISSING = re.compile(r"(sample \d+: )?gt\.\S+ is missing$")
_FORM = re.compile(r"(?:sample \d+: )?method missing: Tensor\.(\w+)$")

COMMAND = "python tests/coverage/run.py --write docs/coverage.md"

_PAGE = """# Coverage of PyTorch's operators

PyTorch tests its operators with a database: for each entry it has samples of arguments. GT runs
the same samples. **{passed} of {total} entries pass.**

{table}

The last line is beyond the count: entries that do not take float32, checked with integers, bools or
complex numbers.
{left_out}

## What passing means

An entry passes if every sample that PyTorch runs with {dtype} on a CPU gives the same in GT:

- values, dtypes and shapes of all results, within about 1e-5 for float32, or up to ten times that
  where the database allows more;
- gradients of all arguments that have them, for drawn gradients of the results, within ten times
  that;
- arguments that the operation writes to, such as running averages.

The method and the form in place, `x.exp()` and `x.exp_()`, have to exist where PyTorch has them,
and to give the same. Random results are compared by shape, dtype and distribution, and one seed has
to give the same numbers twice; of `empty` and the like, shape and dtype. Where several results are
right, as the signs of eigenvectors, what the database makes of them is compared.

## Again

```
{command}
```

This checks everything, with PyTorch and SciPy installed, and writes this page. It also writes
`tests/coverage/passing.txt`: what is named there has to pass in `make test-all`.

## What does not pass
"""


def table(results: list[dict]) -> str:
    """Give a table of all groups, in Markdown."""
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
    """Give all failing entries with their first reasons, a line for each."""
    failing = [result for result in results if result["reasons"]]
    return "\n".join(
        f"{result['name']}: " + "\n    ".join(result["reasons"][:reasons]) for result in failing
    )


def passing(results: list[dict]) -> str:
    """Give the names of all entries that pass, a line for each."""
    return "".join(f"{name}\n" for name in sorted(_passing(results)))


def page(results: list[dict], dtype: str) -> str:
    """Give the page of the documentation."""
    counted = [result for result in results if result["group"] != WITHOUT_FLOAT32]
    left_out = ", ".join(f"`{name}` ({why})" for name, why in LEFT_OUT.items())
    text = _PAGE.format(
        passed=len(_passing(counted)),
        total=len(counted),
        table=table(results),
        left_out=_wrapped(f"Left out are {left_out}.").rstrip(),
        dtype=dtype,
        command=COMMAND,
    )
    groups = (*GROUPS, WITHOUT_FLOAT32)
    return text + "".join(
        _section(name, [r for r in results if r["group"] == name and r["reasons"]])
        for name in groups
    )


def _section(group: str, failing: list[dict]) -> str:
    """Give what fails in one group: what is missing by name, the rest with the reason."""
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
        parts += [f"| `{r['name']}` | {_cell(r['reasons'][0])} |" for r in others]
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
    """Give an entry and the method that it lacks."""
    method = _FORM.match(result["reasons"][0])[1]
    name = result["name"]
    return f"`{name}`" if method == name else f"`{name}` (`{method}`)"


def _cell(text: str) -> str:
    """Give a text as it may stand in a cell of a table."""
    for one, other in (("&", "&amp;"), ("<", "&lt;"), ("|", "\\|"), ("*", "\\*"), ("_", "\\_")):
        text = text.replace(one, other)
    return text
