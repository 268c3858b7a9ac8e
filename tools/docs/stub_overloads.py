"""Overloads of the stubs: results that depend on arguments, and NumPy's names of parameters."""

from __future__ import annotations

import itertools

#: A form in which a function may be called: its parameters, and the type of its result.
Form = tuple[list[str], str]

_DIMS = "_int | Sequence[_int]"
_EXTREME = [
    ([], "Tensor"),
    (["dim: _int", "keepdim: _bool = False", "*", "keepdims: _bool = ..."], "_ValuesIndices"),
    (["dim: Sequence[_int] | None", "keepdim: _bool = False"], "Tensor"),
    (["other: Tensor", "/"], "Tensor"),
    (["*", f"axis: {_DIMS} | None = None", "keepdims: _bool = False"], "Tensor"),
]
_MEDIAN = [([], "Tensor"), (["dim: _int", "keepdim: _bool = False"], "_ValuesIndices")]
_AT_LEAST = [
    (["tensor: Tensor", "/"], "Tensor"),
    (["first: Tensor", "second: Tensor", "/", "*others: Tensor"], "tuple[Tensor, ...]"),
    (["tensors: Sequence[Tensor]", "/"], "tuple[Tensor, ...]"),
]

#: The forms of functions and methods, without the first parameter of those that take a tensor.
FORMS: dict[str, list[Form]] = {
    "max": _EXTREME,
    "min": _EXTREME,
    "median": _MEDIAN,
    "nanmedian": _MEDIAN,
    "size": [([], "_Size"), (["dim: _int"], "_int")],
    "stride": [([], "tuple[_int, ...]"), (["dim: _int"], "_int")],
    "atleast_1d": _AT_LEAST,
    "atleast_2d": _AT_LEAST,
    "atleast_3d": _AT_LEAST,
    "where": [
        ([], "tuple[Tensor, ...]"),
        (["input: _TensorLike", "other: _TensorLike"], "Tensor"),
    ],
}

#: The flags that determine what is returned, with the results without and with them.
FLAGS = {
    "as_tuple": ("Tensor", "tuple[Tensor, ...]"),
    "get_infos": ("_LUFactor", "_LUFactorEx"),
    "return_indices": ("Tensor", "tuple[Tensor, Tensor]"),
}

#: The functions that add a tensor to the result for each flag that is set.
ADDING = {
    "unique": ["return_inverse", "return_counts"],
    "unique_consecutive": ["return_inverse", "return_counts"],
}


def forms(name: str, parameters: list[str], result: str) -> list[Form]:
    """Return the forms in which a function may be called."""
    if name in FORMS and result == "Any":
        first = [] if name.startswith("atleast") else parameters[:1]
        own = [([*first, *others], of) for others, of in FORMS[name]]
        if "axis" in names(parameters):
            return own
    elif name in ADDING:
        own = _adding(parameters, ADDING[name])
    elif (result == "Any" or "|" in result) and (
        flag := next(filter(FLAGS.get, names(parameters)), None)
    ):
        without, with_flag = FLAGS[flag]
        own = [
            (_flagged(parameters, {flag: False}), without),
            (_flagged(parameters, {flag: True}), with_flag),
            (parameters, result),
        ]
    else:
        own = [(parameters, result)]
    return [(given, of) for each, of in own for given in _with_synonyms(each)]


def names(parameters: list[str]) -> list[str]:
    """Return the names of parameters, with `*` and `/` where they stand alone."""
    return [text if text == "*" else text.lstrip("*").partition(":")[0] for text in parameters]


def _adding(parameters: list[str], flags: list[str]) -> list[Form]:
    """Return a form for each combination of flags, and one for flags that are not literals."""
    combinations = itertools.product((False, True), repeat=len(flags))
    found: list[Form] = []
    for values in combinations:
        parts = ", ".join(["Tensor"] * (1 + sum(values)))
        result = f"tuple[{parts}]" if any(values) else "Tensor"
        found.append((_flagged(parameters, dict(zip(flags, values, strict=True))), result))
    return [*found, (parameters, "Any")]


def _flagged(parameters: list[str], values: dict[str, bool]) -> list[str]:
    """Return parameters in which flags have literal types; flags that are set are keywords."""
    changed, after_star = [], False
    for name, text in zip(names(parameters), parameters, strict=True):
        after_star = after_star or text.startswith("*")
        if name not in values:
            changed.append(text)
        elif values[name]:
            changed += [] if after_star else ["*"]
            after_star = True
            changed.append(f"{name}: Literal[True]")
        else:
            changed.append(f"{name}: Literal[False] = False")
    bare = [place for place, text in enumerate(changed) if text == "*"]
    return [text for place, text in enumerate(changed) if text != "*" or place == bare[0]]


def _with_synonyms(parameters: list[str]) -> list[list[str]]:
    """Return parameters with PyTorch's names, and with NumPy's where they differ."""
    own = names(parameters)
    if "axis" in own:
        return [parameters]
    places = [place for place, name in enumerate(own) if name in ("dim", "dims")]
    kept = [*parameters]
    if "keepdim" in own and "keepdims" not in own:
        has_star = any(text.startswith("*") for text in parameters)
        kept += [] if has_star else ["*"]
        kept.append("keepdims: _bool = ...")
    if not places:
        return [kept]
    (place, *_) = places
    before, after = kept[:place], [text for text in kept[place + 1 :] if text != "*"]
    kind = kept[place].partition(": ")[2].partition(" = ")[0]
    star = [] if any(text.startswith("*") for text in before) else ["*"]
    return [kept, [*before, *star, f"axis: {kind}", *after]]
