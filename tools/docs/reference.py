"""Pages of the API reference that list many names by group, and a check that no name is missing.

The pages are written beside the package that mkdocstrings reads, and contain its directives. Names
are grouped by the modules that define them, and primitives by their families, so that a new name
of a listed module needs no change here. A name of any other module is an error.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
from collections.abc import Callable
from typing import Any

import gt
from groups import PAGES
from gt import _gt
from gt._calls import plain

#: The family of each primitive.
FAMILIES = {operation["name"]: operation["family"] for operation in _gt.operations()}

#: Modules whose names have to be in the reference. `gt.torch` is added if PyTorch is installed.
MODULES = """
gt gt.amp gt.autograd gt.autograd.functional gt.checkpoint gt.compiler gt.config gt.cuda gt.data
gt.debug gt.distributions gt.errors gt.fft gt.formats gt.func gt.linalg gt.masked gt.nn
gt.nn.functional gt.nn.init gt.nn.utils gt.optim gt.optim.lr_scheduler gt.optim.swa_utils
gt.random gt.signal gt.signal.windows gt.special gt.testing
""".split()


TENSOR_PAGE = """# Tensor

Attributes, and methods that are not functions of `gt` as well; those are in
[a table](tensor-methods.md). In-place forms of the methods here: {forms}.

::: gt.Tensor
    options: {{members: [{members}]}}
"""

METHODS_PAGE = """# Tensor methods that are functions

`x.sum(0)` is `gt.sum(x, 0)`; the links lead to the functions. A method in the second column
stores the result in `x`.

| method | in place | |
| --- | --- | --- |
{rows}
"""


def pages() -> dict[str, str]:
    """Return the pages by their paths in the site's folder; raise if a name has no section."""
    sections: dict[tuple[str, str], tuple[str, str]] = {}
    for path, page in PAGES.items():
        for title, words in page.sections.items():
            sections.update({(page.namespace, word): (path, title) for word in words.split()})
    found: dict[tuple[str, str], list[str]] = {}
    for namespace in dict.fromkeys(page.namespace for page in PAGES.values()):
        for name in operations() if namespace == "gt" else public(namespace):
            word = origin(namespace, name)
            if word is None:
                continue
            if (namespace, word) not in sections:
                raise LookupError(
                    f"{namespace}.{name} is on no page of the API reference\n"
                    f"  hint: add '{word}' to a section of PAGES in tools/docs/groups.py"
                )
            found.setdefault(sections[namespace, word], []).append(name)
    texts = {}
    for path, page in PAGES.items():
        parts = [f"# {page.title}\n"]
        for title in page.sections:
            parts += [f"## {title}\n", *entries(page.namespace, found[path, title])]
        texts[f"api/{path}.md"] = "\n".join(parts)
    return {**texts, **tensor_pages()}


def operations() -> list[str]:
    """Return the names of the operations that are functions of `gt`."""
    return [name for name in gt.ops.__all__ if not name.startswith("_")]


def public(module: str) -> list[str]:
    """Return the public functions and classes of a module."""
    found = importlib.import_module(module)
    names = [name for name in getattr(found, "__all__", ()) if not name.startswith("_")]
    return sorted(name for name in names if is_entry(getattr(found, name)))


def is_entry(value: Any) -> bool:
    """Return whether a value has an entry of its own: a function or a class."""
    return callable(value) and not inspect.ismodule(value)


def origin(namespace: str, name: str) -> str | None:
    """Return the module or family that decides where a name is listed; None for another page's."""
    value = getattr(importlib.import_module(namespace), name)
    is_in_place = name.endswith("_") and name[:-1] in gt.ops.__all__
    base = getattr(gt, name[:-1]) if is_in_place else None
    value = inspect.unwrap(base if base is not None and namespace == "gt" else value)
    module = getattr(value, "__module__", None)
    if module is None:
        return FAMILIES.get(value.__name__, "Unary") if namespace != "gt.nn" else None
    if namespace == "gt.nn" and not isinstance(value, type):
        return None  # of gt.nn.functional
    if module.startswith("gt.optim"):
        return None
    return module.rpartition(".")[2]


def entries(namespace: str, names: list[str]) -> list[str]:
    """Return the entries of a section, after a line each for other names and in-place forms."""
    module = importlib.import_module(namespace)
    others, in_place, directives = [], [], []
    for name in names:
        value = getattr(module, name)
        own = getattr(value, "__name__", name)
        here = f"{anchor(f'{namespace}.{name}')}`{name}`"
        if own != name and getattr(module, own, None) is value:
            others.append(f"{here} is [`{own}`][{namespace}.{own}]")
        elif name.endswith("_") and name[:-1] in names:
            in_place.append(here)
        else:
            directives.append(f"::: {namespace}.{name}\n    options: {{heading_level: 3}}\n")
    lines = []
    if others:
        lines.append(f"Other names: {', '.join(others)}.\n")
    if in_place:
        lines.append(f"In-place forms, which change their first argument: {', '.join(in_place)}.\n")
    return lines + directives


def anchor(identifier: str) -> str:
    """Return an invisible target of links."""
    return f'<a id="{identifier}"></a>'


def tensor_pages() -> dict[str, str]:
    """Return the pages of `gt.Tensor`: its own members, and a table of those that are functions."""
    names = [name for name in dir(gt.Tensor) if not name.startswith("_")]
    is_method = {name: callable(getattr(gt.Tensor, name)) for name in names}
    bases = [name for name in operations() if is_method.get(name)]
    in_place = {name for name in names if name.endswith("_") and name[:-1] in names}
    own = [name for name in names if name not in {*bases, *in_place}]
    left = sorted(name for name in in_place if name[:-1] not in bases)
    forms = ", ".join(f"{anchor(f'gt.Tensor.{name}')}`{name}`" for name in left)
    rows = "\n".join(row(name, f"{name}_" in in_place) for name in bases if name not in in_place)
    return {
        "api/tensor.md": TENSOR_PAGE.format(members=", ".join(own), forms=forms),
        "api/tensor-methods.md": METHODS_PAGE.format(rows=rows),
    }


def row(name: str, in_place: bool) -> str:
    """Return the table row of a method that is a function."""
    method = getattr(gt.Tensor, name)
    document = (inspect.getdoc(method) or "").partition("\n\n")[0].replace("\n", " ")
    form = f"{anchor(f'gt.Tensor.{name}_')}`{name}_`" if in_place else ""
    parts = re.split(r"(`[^`]*`)", document.replace("|", "\\|"))
    text = "".join(part if part.startswith("`") else escaped(part) for part in parts)
    link = f"[`{name}{arguments(method)}`][gt.{getattr(gt, name).__name__}]"
    return f"| {anchor(f'gt.Tensor.{name}')}{link} | {form} | {text} |"


def escaped(text: str) -> str:
    """Return a text whose characters mean nothing to Markdown."""
    return re.sub(r"([*_\[])", r"\\\1", text).replace("<", "&lt;")


def arguments(method: Callable[..., Any]) -> str:
    """Return the arguments of a method, without the tensor that it is called on."""
    signature = inspect.signature(method)
    given = plain(signature.replace(parameters=[*signature.parameters.values()][1:]))
    return given.replace("(/, ", "(").replace("(/)", "()").replace("|", "\\|")


def names() -> list[str]:
    """Return what the reference must have: in each line the names of one function or class."""
    modules = MODULES
    with contextlib.suppress(ImportError):  # PyTorch is missing, or too old
        importlib.import_module("gt.torch")
        modules = [*MODULES, "gt.torch"]
    found: dict[int, list[str]] = {}
    for module in modules:
        for name in public(module):
            value = getattr(importlib.import_module(module), name)
            found.setdefault(id(value), []).append(f"{module}.{name}")
    methods = [f"gt.Tensor.{name}" for name in dir(gt.Tensor) if not name.startswith("_")]
    return [*(" ".join(same) for same in found.values()), *methods]
