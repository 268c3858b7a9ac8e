"""Check one entry of the operator database: values, dtypes, shapes and gradients."""

import time
import warnings
from dataclasses import dataclass, field

import chance
import counterpart
import entries
import gt
import kinds
import ties
import torch
from compare import Different, Tolerance, compare
from convert import ToGt, copy, tensors_in
from exact import as_exact
from gradients import check_gradients
from reasons import limit, reason, said

# The time limit of one entry.
SECONDS = 60


@dataclass
class Result:
    """The result of an entry; `reasons` is empty if it passed."""

    name: str
    kind: str
    group: str
    samples: int = 0
    seconds: float = 0.0
    reasons: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not self.reasons


@dataclass
class Face:
    """A form of an operation, in PyTorch and in GT: function, method or in-place method."""

    label: str
    torch: object
    gt: object
    in_place: bool = False


def check_entry(
    name: str,
    kind: str = kinds.DTYPES[0],
    faces: bool = True,
    all_reasons: bool = False,
):
    """Check an entry, and return its result. Stops at the first failure unless `all_reasons`.

    For gradients of gradients, only the function is checked, with some of the samples.
    """
    op = entries.entries()[name]
    dtype = entries.dtype_of(op, kinds.dtype_of(kind))
    second = kind == kinds.SECOND
    result = Result(name, kind, entries.group(op))
    begin = time.monotonic()
    try:
        with limit(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _check(op, dtype, faces and not second, second, all_reasons, result)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # A panic in GT's Rust code is not an Exception.
        result.reasons.append(reason(error))
    result.seconds = round(time.monotonic() - begin, 2)
    if result.reasons and (why := entries.not_intended(name)):
        result.reasons[:0] = [why]
    return result


def _check(op, dtype, faces: bool, second: bool, all_reasons: bool, result: Result) -> None:
    for seed in (torch.manual_seed, gt.manual_seed):
        seed(0)
    forms = [Face("", counterpart.in_torch(op.op), counterpart.function_of(op))]
    forms += _other_forms(op, result) if faces else ()
    if result.reasons and not all_reasons:
        return
    grad = op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    checker = _Checker(op, forms, second)
    samples = list(enumerate(op.sample_inputs("cpu", dtype, requires_grad=grad)))
    step = -(-len(samples) // kinds.SECOND_SAMPLES) if second else 1
    for place, sample in samples[:: max(step, 1)]:
        try:
            result.samples += checker.check(sample)
        except Exception as error:
            result.reasons.append(f"sample {place}: {reason(error)}")
            if not all_reasons:
                return
    if not result.samples and not result.reasons:
        result.reasons.append("PyTorch runs none of its samples")


def _other_forms(op, result: Result) -> list[Face]:
    """Return the method and the in-place method that PyTorch has."""
    forms = []
    for label, variant in (("method", op.method_variant), ("in place", op.inplace_variant)):
        if variant is None:
            continue
        try:
            found = counterpart.face_of(variant)
        except counterpart.Missing as error:
            result.reasons.append(str(error))
        else:
            known = counterpart.in_torch(variant)
            forms.append(Face(label, known, found, label == "in place"))
    return forms


class _Checker:
    """Checks the samples of one entry."""

    def __init__(self, op, forms: list[Face], second: bool):
        name = entries.key(op)
        self.name, self.second = op.name, second
        self.forms = forms
        self.tolerance = Tolerance(op)
        self.values = name not in entries.EMPTY
        self.random = name in entries.RANDOM
        self.may_be_random = self.values and "wrapper_set_seed" in getattr(
            getattr(op.op, "__code__", None), "co_names", ()
        )
        self.several_answers = name in entries.SEVERAL_ANSWERS

    def check(self, sample) -> bool:
        """Check all forms with a sample; return whether PyTorch accepts it."""
        if "out" in sample.kwargs:
            return False
        function, *others = self.forms
        if not self._check_form(function, sample):
            return False
        for form in others:
            with said(form.label):
                self._check_form(form, sample)
        return True

    def _check_form(self, form: Face, sample) -> bool:
        """Check one form with a sample; return whether PyTorch accepts it."""
        main = not form.label
        given = (sample.input, sample.args, sample.kwargs)
        if not main and not _applies(form, sample):
            return False
        given = copy(given, grad=main)
        want = _run_torch(form, given)
        if want is None or (form.in_place and not _fits_in_place(want[0], sample.input)):
            return False
        if self._is_random(form, given, sample):
            self._check_random(form, sample, given, main)
        else:
            self._check_values(form, sample, copy(given), main)
        return True

    def _is_random(self, form: Face, given, sample) -> bool:
        if self.random or not self.may_be_random:
            return self.random
        return chance.is_random(
            lambda: sample.output_process_fn_grad(_call(form.torch, copy(given))), self.tolerance
        )

    def _check_random(self, form: Face, sample, given, gradients: bool) -> None:
        process = sample.output_process_fn_grad if self.several_answers else lambda result: result
        chance.compare_random(
            lambda: counterpart.in_gt(process)(_call(form.gt, ToGt()(given))),
            lambda: process(_call(form.torch, copy(given))),
            self.tolerance,
        )
        convert = ToGt()
        results = _call(form.gt, convert(given)), _call(form.torch, given)
        if gradients and convert.needing_grad():
            check_gradients(*results, convert, self.tolerance, values=False, second=self.second)

    def _check_values(self, form: Face, sample, given, gradients: bool) -> None:
        convert = ToGt()
        for_gt = convert(given)
        before = copy(given, grad=False)
        versions = [tensor._version for tensor in tensors_in(given)]
        want = _call(form.torch, given)
        got = _call(form.gt, for_gt)
        process = sample.output_process_fn_grad
        processed = (got, want)
        if gradients or self.several_answers:
            processed = counterpart.in_gt(process)(got), process(want)
        shown = processed if self.several_answers else (got, want)
        any_order = ties.free(self.name, sample)
        if any_order:
            shown = ties.selected(self.name, for_gt, got), ties.selected(self.name, given, want)
        try:
            compare(*shown, self.tolerance, self.values)
        except Different:
            if shown[0] is not got or not as_exact(got, want, form.torch, before):
                raise
        self._check_written(convert, versions, given)
        if gradients and convert.needing_grad():
            tolerance = self.tolerance.for_gradients()
            check_gradients(*processed, convert, tolerance, not any_order, self.second)

    def _check_written(self, convert: ToGt, versions: list[int], given) -> None:
        """Compare the arguments that PyTorch has changed."""
        for version, tensor in zip(versions, tensors_in(given), strict=True):
            if tensor._version != version:
                with said("written argument"):
                    compare(convert(tensor), tensor, self.tolerance, self.values)


def _applies(form: Face, sample) -> bool:
    """Return whether a method can be called with a sample."""
    if not isinstance(sample.input, torch.Tensor):
        return False
    return not (form.in_place and sample.broadcasts_input)


def _fits_in_place(want, given: torch.Tensor) -> bool:
    if not isinstance(want, torch.Tensor):
        return False
    return want.dtype == given.dtype and want.shape == given.shape


def _call(function, given):
    input, args, kwargs = given
    return function(input, *args, **kwargs)


def _run_torch(form: Face, given):
    """Return PyTorch's result in a tuple, or None if it raises."""
    try:
        return (_call(form.torch, copy(given)),)
    except Exception:
        return None
