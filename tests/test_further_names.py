"""PyTorch functions other than operations: most change nothing, or raise with a reason."""

import copy
import warnings

import gt
import pytest
from gt.utils.checkpoint import create_selective_checkpoint_contexts
from gt.utils.data import DataLoader
from gt.utils.dlpack import from_dlpack, to_dlpack


def test_scripts_and_compilers_leave_functions_as_they_are():
    @gt.jit.script
    def doubled(x):
        return x * 2

    @gt.compiler.disable
    def tripled(x):
        return x * 3

    class Net(gt.nn.Module):
        @gt.jit.ignore
        def one(self):
            return 1

        @gt.jit.ignore(drop=True)
        def two(self):
            return 2

    assert (doubled(gt.ones(1)) + tripled(gt.ones(1))).item() == 5
    assert Net().one() + gt.jit.trace(Net(), gt.ones(1)).two() == 3
    assert not (gt.jit.is_scripting() or gt.jit.is_tracing() or gt.compiler.is_compiling())


def test_gpu_functions_without_a_gpu():
    assert gt.cuda.memory_allocated() == gt.cuda.max_memory_allocated("cuda:0") == 0
    assert not gt.cuda.is_bf16_supported() and gt.cuda.get_rng_state_all() == []
    model = gt.nn.Linear(2, 2)
    assert model.cuda() is model and gt.ones(2).cuda(0, non_blocking=True).cpu().tolist() == [1, 1]
    with pytest.raises(NotImplementedError, match="is_available"):
        gt.cuda.Event(enable_timing=True)
    with pytest.raises(AttributeError, match="is_available"):
        _ = gt.cuda.no_such_function
    with pytest.raises(RuntimeError, match="no GPUs"):
        gt.cuda.set_rng_state_all([gt.get_rng_state()])


def test_settings_of_libraries_are_kept():
    with gt.backends.cudnn.flags(enabled=False, benchmark=True):
        assert gt.backends.cudnn.benchmark and not gt.backends.cudnn.enabled
    assert gt.backends.cudnn.enabled and gt.backends.cudnn.version() is None
    gt.backends.cuda.enable_flash_sdp(False)
    assert not gt.backends.cuda.flash_sdp_enabled() and gt.backends.cuda.math_sdp_enabled()
    gt.backends.cuda.enable_flash_sdp(True)
    assert not gt.backends.mps.is_built()
    with pytest.raises(TypeError, match="expected some of"):
        gt.backends.cudnn.flags(speed=1).__enter__()


def test_settings_of_processes_are_checked():
    gt.set_num_interop_threads(1)
    assert gt.get_num_interop_threads() == 1 and gt.set_flush_denormal(True) is False
    with pytest.raises(RuntimeError, match="positive"):
        gt.set_num_interop_threads(0)
    try:
        gt.set_default_tensor_type("torch.cuda.DoubleTensor")
        assert gt.ones(1).dtype == gt.float64
    finally:
        gt.set_default_tensor_type(gt.FloatTensor)
    assert gt.ones(1).dtype == gt.float32
    with pytest.raises(TypeError, match="gt.FloatTensor"):
        gt.set_default_tensor_type("torch.LongTensor")


def test_parallel_modules_call_their_module():
    model = gt.nn.DataParallel(gt.nn.Linear(2, 1), device_ids=[0, 1])
    x = gt.ones(3, 2)
    assert model(x).equal(model.module(x))
    assert list(model.state_dict()) == ["module.weight", "module.bias"]


def test_tensor_names_of_old_programs():
    x = gt.autograd.Variable(gt.ones(2), requires_grad=True)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2] and isinstance(x, gt.autograd.Variable)
    assert (
        gt.ones(3).apply_(lambda v: v + 1).map_(gt.ones(3), lambda a, b: a - b).tolist() == [1] * 3
    )
    y = gt.ones(2, requires_grad=True) * 3
    assert y.grad_fn is not None and y.detach_() is y and y.grad_fn is None and y.is_leaf
    with pytest.raises(RuntimeError, match="is a view"):
        y[:1].detach_()
    with pytest.raises(AttributeError, match="get_tape"):
        _ = (x * 2).grad_fn.next_functions


def test_unsupported_features_raise_or_warn():
    with pytest.raises(NotImplementedError, match="CheckpointPolicy"):
        create_selective_checkpoint_contexts([])
    with pytest.raises(AttributeError, match="saved_tensors_hooks"):
        gt.autograd.graph.saved_tensors_hooks(None, None)
    with pytest.warns(UserWarning, match="GT_CHECK_NAN"), gt.autograd.detect_anomaly():
        pass
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gt.autograd.set_detect_anomaly(False)


def test_modules_of_utils():
    assert from_dlpack(to_dlpack(gt.ones(2))).tolist() == [1, 1]
    assert DataLoader is gt.data.DataLoader and gt.GradScaler is gt.amp.GradScaler


def test_gradients_by_pytorchs_arguments():
    x, unused = gt.tensor([1.0, 2.0], requires_grad=True), gt.ones(3, requires_grad=True)
    y = x**2
    rows = gt.autograd.grad(y, x, gt.eye(2), is_grads_batched=True, retain_graph=True)[0]
    assert rows.tolist() == [[2, 0], [0, 4]]
    assert gt.autograd.grad(y.sum(), unused, allow_unused=True, retain_graph=True) == (None,)
    dx, zeros = gt.autograd.grad(y.sum(), [x, unused], materialize_grads=True)
    assert dx.tolist() == [2, 4] and zeros.tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError, match="retain_graph|earlier backward"):
        gt.autograd.grad(y.sum(), x)
    with pytest.raises(ValueError, match="materialize_grads"):
        gt.autograd.grad(y, x, materialize_grads=True, allow_unused=False)
    with pytest.warns(FutureWarning, match="only_inputs"):
        gt.autograd.grad((x * 2).sum(), x, only_inputs=False)


def test_normalize_writes_to_out():
    out = gt.empty(0)
    vectors = gt.tensor([[3.0, 4.0]])
    assert gt.nn.functional.normalize(vectors, out=out) is out
    assert gt.allclose(out, gt.tensor([[0.6, 0.8]]))
    with pytest.raises(RuntimeError, match="automatic differentiation"):
        gt.nn.functional.normalize(vectors.requires_grad_(), out=out)


@pytest.mark.parametrize("kind", [gt.nn.Parameter, gt.nn.Buffer])
def test_shallow_copies_are_of_their_class_and_share_memory(kind):
    tensor = kind(gt.arange(3), **({"requires_grad": False} if kind is gt.nn.Parameter else {}))
    tensor.mark = "kept"
    again = copy.copy(tensor)
    assert type(again) is kind and again.mark == "kept" and not again.requires_grad
    again[0] = 7
    assert tensor.tolist() == [7, 1, 2]
    assert copy.copy(gt.nn.Parameter(gt.ones(1))).requires_grad
