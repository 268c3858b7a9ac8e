"""Functions with custom gradients, and hooks on gradients."""

import gc

import gt
import numpy as np
import pytest


def leaf(*values):
    return gt.tensor(list(values), requires_grad=True)


class ScaledExp(gt.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        result = (x * scale).exp()
        ctx.save_for_backward(result)
        ctx.scale = scale
        return result

    @staticmethod
    def backward(ctx, grad):
        (result,) = ctx.saved_tensors
        return grad * result * ctx.scale, None


class ProductAndSum(gt.autograd.Function):
    @staticmethod
    def forward(a, b):
        return a * b, a + b, "not a tensor"

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_product, grad_sum, nothing):
        assert nothing is None
        a, b = ctx.saved_tensors
        return grad_product * b + grad_sum, grad_product * a + grad_sum


class Identity(gt.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        return grad


def test_first_and_second_gradients():
    x = leaf(0.5, 1.0)
    y = ScaledExp.apply(x, 2).sum()
    (first,) = gt.autograd.grad(y, x, create_graph=True)
    (second,) = gt.autograd.grad(first.sum(), x)
    np.testing.assert_allclose(first.detach().numpy(), 2 * np.exp([1.0, 2.0]), rtol=1e-5)
    np.testing.assert_allclose(second.detach().numpy(), 4 * np.exp([1.0, 2.0]), rtol=1e-5)


class BothExps(gt.autograd.Function):
    """The first result's gradient is computed from the second one."""

    @staticmethod
    def forward(ctx, x):
        result = x.exp()
        ctx.save_for_backward(result)
        return result * 1, result

    @staticmethod
    def backward(ctx, grad, _):
        (result,) = ctx.saved_tensors
        return grad * result


def test_a_saved_result_that_the_program_has_dropped_has_its_history():
    x = leaf(0.5, 1.0)
    (first,) = gt.autograd.grad(BothExps.apply(x)[0].sum(), x, create_graph=True)
    assert first.requires_grad


def test_several_outputs_of_which_one_is_used():
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    product, total, text = ProductAndSum.apply(a, b)
    assert text == "not a tensor"
    product.sum().backward(retain_graph=True)
    assert a.grad.tolist() == [3, 4] and b.grad.tolist() == [1, 2]
    total.sum().backward()
    assert a.grad.tolist() == [4, 5] and b.grad.tolist() == [2, 3]


def test_needs_input_grad_and_constant_outputs():
    class Split(gt.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            assert ctx.needs_input_grad == (True, False)
            sign = x > 0
            rest = x * 0
            ctx.mark_non_differentiable(rest)
            return x * y, rest, sign

        @staticmethod
        def backward(ctx, grad, *zeros):
            assert all(zero.sum().item() == 0 for zero in zeros)
            return grad, None

    x, y = leaf(1.0, -2.0), gt.tensor([3.0, 4.0])
    product, rest, sign = Split.apply(x, y)
    assert product.requires_grad and not rest.requires_grad and not sign.requires_grad
    product.sum().backward()
    assert x.grad.tolist() == [1, 1]
    with gt.no_grad():
        assert not ProductAndSum.apply(x, y)[0].requires_grad


def test_a_graph_of_functions_is_freed_with_its_result():
    x = leaf(1.0)
    y = x
    for _ in range(5000):
        y = Identity.apply(y)
    entries = [entry for entry in gt.debug.get_tape() if entry["op"] == "Identity"]
    assert len(entries) == 5000 and entries[0]["inputs"] == ["float32 (1,)"]
    y.sum().backward()
    assert x.grad.tolist() == [1]
    y = ScaledExp.apply(x, 2)
    del y
    gc.collect()
    names = {entry["op"] for entry in gt.debug.get_tape()}
    assert "Identity" not in names and "ScaledExp" not in names


def test_mistakes_in_backward():
    def function(result):
        class Wrong(gt.autograd.Function):
            @staticmethod
            def forward(ctx, x, factor):
                return x * factor

            @staticmethod
            def backward(ctx, grad):
                return result(grad)

        return Wrong.apply(leaf(1.0, 2.0), 2).sum()

    with pytest.raises(RuntimeError, match="returned 1 gradients for 2 arguments"):
        function(lambda grad: grad).backward()
    with pytest.raises(RuntimeError, match=r"gradient of shape \(\) for a tensor of shape \(2,\)"):
        function(lambda grad: (grad.sum(), None)).backward()
    with pytest.raises(TypeError, match="gradient 0 is of type float"):
        function(lambda grad: (1.0, None)).backward()
    with pytest.raises(RuntimeError, match="argument 1 of forward is no tensor"):
        function(lambda grad: (grad, grad)).backward()
    with pytest.raises(KeyError, match="mine"):
        function(lambda grad: {}["mine"]).backward()


def test_a_second_pass_needs_the_graph():
    y = Identity.apply(leaf(1.0))
    y.backward()
    with pytest.raises(RuntimeError, match="graph of 'Identity' was freed"):
        y.backward()


def test_hooks_see_and_change_gradients():
    x, seen = leaf(1.0, 2.0), []
    y = x * 3
    y.retain_grad()
    y.register_hook(lambda grad: seen.append(grad.tolist()))
    handle = y.register_hook(lambda grad: grad * 2)
    (y * y).sum().backward()
    assert seen == [[6, 12]] and y.grad.tolist() == [12, 24] and x.grad.tolist() == [36, 72]
    handle.remove()
    x.grad = None
    with x.register_hook(lambda grad: grad * 10):
        (x * 3).sum().backward()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [33, 33] and len(seen) == 1


def test_mistakes_in_hooks():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="does not require gradients"):
        gt.ones(2).register_hook(lambda grad: None)
    with pytest.raises(RuntimeError, match="does not require gradients"):
        gt.ones(2).retain_grad()
    handle = x.register_hook(lambda grad: grad.sum())
    with pytest.raises(RuntimeError, match="a hook returned a gradient of shape"):
        (x * 2).sum().backward()
    handle.remove()
    x.register_hook(lambda grad: {}["mine"])
    with pytest.raises(KeyError, match="mine"):
        (x * 2).sum().backward()


def test_saved_tensors_keep_their_values():
    """In-place changes after forward do not affect backward, as in operations of GT."""
    x = leaf(2.0)
    y = ProductAndSum.apply(x, x)[0]
    with gt.no_grad():
        x.mul_(10)
    y.sum().backward()
    assert x.grad.tolist() == [4]


def test_grad_does_not_affect_other_tensors():
    seen = []
    w, b = leaf(3.0), leaf(2.0)
    b.register_hook(lambda grad: seen.append("b"))
    y = b * b
    y.retain_grad()
    (grad,) = gt.autograd.grad((w * b + y).sum(), [w])
    assert grad.tolist() == [2] and seen == [] and y.grad is None
    x = w * w
    x.register_hook(lambda grad: seen.append("x"))
    (grad,) = gt.autograd.grad((x * 3).sum(), [x])
    # The pass stops at x: the graph behind x was not used and still exists.
    assert grad.tolist() == [3] and seen == ["x"]
    x.sum().backward()
    assert w.grad.tolist() == [6]


def test_hooks_outlive_freezing_and_retained_gradients_changes_in_place():
    x, seen = leaf(1.0), []
    x.register_hook(lambda grad: seen.append(grad.tolist()))
    x.requires_grad_(False)
    x.requires_grad_(True)
    y = x * 3
    y.retain_grad()
    y.mul_(2)
    (y * y).sum().backward()
    assert seen == [[72]] and y.grad.tolist() == [12]


def test_a_hook_may_remove_others_when_it_is_freed():
    x = leaf(1.0)
    other = x.register_hook(lambda grad: None)

    class Last:
        def __del__(self):
            other.remove()

    last = Last()
    handle = x.register_hook(lambda grad, last=last: None)
    del last
    handle.remove()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2]


def test_scopes_that_a_backward_leaves_open_are_closed():
    class Opens(gt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            gt.signal.enter("inner")
            raise KeyError("mine")

    before = gt.signal.current_signal()
    with gt.signal.context("outer"):
        y = Opens.apply(leaf(1.0)).sum()
    with pytest.raises(KeyError):
        y.backward()
    assert gt.signal.current_signal() == before
