"""PyTorch's operator database on the device "cluster", with PyTorch's own tests for devices.

The tests check each entry with all samples and without computing on the host: results are those of
the CPU, with contiguous and other operands; first and second derivatives match finite differences;
in-place and `out` variants return the same results.
"""

import functools
import os
import random
import unittest
import warnings

import excused
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
device = pytest.importorskip("gt.torch")
pytree = pytest.importorskip("torch.utils._pytree")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_device_type import (
        OpDTypes,
        instantiate_device_type_tests,
        ops,
    )
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.common_utils import (
        TestCase,
        TestGradients,
        clone_input_helper,
        is_iterable_of_tensors,
    )

#: The share of entries to test, chosen by name: all entries take about 20 minutes.
_share = float(os.environ.get("GT_TEST_OPERATORS", "0.02"))
ENTRIES = [entry for entry in op_db if random.Random(entry.full_name).random() < _share]


def _on_host(tree):
    """Return a copy on the CPU."""

    def move(leaf):
        if isinstance(leaf, torch.Tensor):
            return leaf.detach().cpu().requires_grad_(leaf.requires_grad)
        return torch.device("cpu") if isinstance(leaf, torch.device) else leaf

    return pytree.tree_map(lambda leaf: "cpu" if leaf == "cluster:0" else move(leaf), tree)


def _metas(tree):
    return pytree.tree_map_only(torch.Tensor, lambda x: (x.shape, x.dtype), tree)


def no_worse_than_cpu(test):
    """Skip a test for entries with which it also fails on the CPU."""

    @functools.wraps(test)
    def run(self, device, dtype, op):
        try:
            test(self, device, dtype, op)
        except unittest.SkipTest:
            raise
        except Exception:
            try:
                test(self, "cpu", dtype, op)
            except Exception:
                self.skipTest("fails on the CPU, too")
            raise

    return run


class TestDeviceOperators(TestCase):
    """Tests of results, each run with each entry."""

    def _call(self, entry, function, sample):
        return function(sample.input, *sample.args, **sample.kwargs)

    def _check_device(self, found, device):
        for one in pytree.tree_leaves(found):
            if isinstance(one, torch.Tensor):
                self.assertEqual(one.device.type, torch.device(device).type)

    @ops(ENTRIES, dtypes=OpDTypes.any_common_cpu_cuda_one)
    def test_compare_cpu(self, device, dtype, op):
        """Results have the CPU's values, and are on the cluster."""
        excused.skip(self, op, "results")
        for sample in op.sample_inputs(device, dtype):
            host = sample.transform(_on_host)
            expected = self._call(op, op, host)
            found = self._call(op, op, sample)
            operands = (sample.input, sample.args, sample.kwargs)
            given = [one for one in pytree.tree_leaves(operands) if isinstance(one, torch.Tensor)]
            if any(one.device.type == "cluster" for one in given):
                self._check_device(found, sample.kwargs.get("device", "cluster"))
            if op.full_name in excused.RANDOM:
                self.assertEqual(_metas(found), _metas(expected))
                continue
            expected = sample.output_process_fn_grad(expected)
            found = sample.output_process_fn_grad(found)
            tolerance = {"atol": 1e-3, "rtol": 1e-3} if dtype.is_floating_point else {}
            self.assertEqual(_on_host(found), expected, exact_device=False, **tolerance)

    @ops(ENTRIES, dtypes=OpDTypes.any_common_cpu_cuda_one)
    @no_worse_than_cpu
    def test_noncontiguous_samples(self, device, dtype, op):
        """Noncontiguous operands lead to the same results."""
        excused.skip(self, op, "layouts")
        if op.full_name in excused.RANDOM:
            self.skipTest("draws random numbers")
        for sample in op.sample_inputs(device, dtype):
            other = sample.noncontiguous()
            expected = sample.output_process_fn_grad(self._call(op, op, sample))
            found = other.output_process_fn_grad(self._call(op, op, other))
            self.assertEqual(_on_host(found), _on_host(expected), atol=1e-3, rtol=1e-3)

    @ops(ENTRIES, dtypes=OpDTypes.any_common_cpu_cuda_one)
    @no_worse_than_cpu
    def test_variant_consistency_eager(self, device, dtype, op):
        """The in-place and `out` variants return the same results."""
        excused.skip(self, op, "forms")
        if op.full_name in excused.RANDOM:
            self.skipTest("draws random numbers")
        in_place = op.inplace_variant
        for sample in op.sample_inputs(device, dtype):
            expected = self._call(op, op, sample)
            if in_place and not sample.broadcasts_input and self._fits(expected, sample.input):
                self._check_in_place(in_place, sample, expected)
            if op.supports_out and isinstance(expected, torch.Tensor):
                out = torch.empty_like(expected)
                found = op(sample.input, *sample.args, out=out, **sample.kwargs)
                self.assertIs(found, out)
                self.assertEqual(_on_host(out), _on_host(expected))

    def _check_in_place(self, in_place, sample, expected):
        try:
            self._call(None, in_place, sample.transform(_on_host))
        except RuntimeError:
            return  # The CPU rejects it too.
        copy = clone_input_helper(sample.input)
        found = in_place(copy, *sample.args, **sample.kwargs)
        for one in (found, copy):
            self.assertEqual(_on_host(one), _on_host(expected).to(one.dtype))

    def _fits(self, result, given):
        """Return whether a result can be stored in the operand."""
        if is_iterable_of_tensors(given) or not isinstance(given, torch.Tensor):
            return False
        return (
            isinstance(result, torch.Tensor)
            and result.shape == given.shape
            and torch.can_cast(result.dtype, given.dtype)
        )


class TestDeviceGradients(TestGradients):
    """Tests of derivatives, each run with each entry."""

    @ops(ENTRIES, allowed_dtypes=[torch.float64])
    @no_worse_than_cpu
    def test_fn_grad(self, device, dtype, op):
        """Gradients match finite differences."""
        excused.skip(self, op, "gradients")
        self._skip_helper(op, device, dtype)
        self._grad_test_helper(device, dtype, op, op.get_op(), check_batched_grad=False)

    @ops(ENTRIES, allowed_dtypes=[torch.float64])
    @no_worse_than_cpu
    def test_fn_gradgrad(self, device, dtype, op):
        """Second derivatives match finite differences."""
        excused.skip(self, op, "gradients of gradients")
        self._skip_helper(op, device, dtype)
        if not op.supports_gradgrad:
            self.skipTest("PyTorch has none")
        entry_checks, op.check_batched_gradgrad = op.check_batched_gradgrad, False
        try:
            self._check_helper(device, dtype, op, op.get_op(), "bwgrad_bwgrad")
        finally:
            op.check_batched_gradgrad = entry_checks


for _class in (TestDeviceOperators, TestDeviceGradients):
    instantiate_device_type_tests(_class, globals(), only_for=("cluster",))
pytestmark = pytest.mark.filterwarnings("ignore")
