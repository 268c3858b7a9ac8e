"""Modules that PyTorch programs import at their top: they work, or refuse when they are used."""

import importlib
import json
import types
from importlib.util import find_spec

import gt
import pytest
from gt.nn.parallel import DistributedDataParallel

IMPORTS = """
import gt.accelerator
import gt.backends.cudnn as cudnn
import gt.distributed as dist
import gt.multiprocessing as mp
import gt.onnx
import gt.utils.benchmark as benchmark
import gt.utils.checkpoint as checkpoint
import gt.utils.model_zoo as model_zoo
import gt.version
from gt._dynamo import config
from gt.ao.quantization import QuantStub
from gt.autograd.function import once_differentiable
from gt.autograd.grad_mode import no_grad
from gt.autograd.profiler import record_function
from gt.backends.cuda import sdp_kernel
from gt.cuda import Event, Stream, nvtx
from gt.cuda.amp.grad_scaler import GradScaler
from gt.distributed.fsdp import FullyShardedDataParallel
from gt.fx import symbolic_trace
from gt.hub import load_state_dict_from_url
from gt.jit import Final, ScriptModule
from gt.nn.attention.flex_attention import flex_attention
from gt.nn.common_types import _size_2_t
from gt.nn.modules import Module
from gt.nn.modules.activation import MultiheadAttention, ReLU
from gt.nn.modules.batchnorm import _BatchNorm
from gt.nn.modules.conv import Conv2d, _ConvNd
from gt.nn.modules.dropout import _DropoutNd
from gt.nn.modules.instancenorm import _InstanceNorm
from gt.nn.modules.loss import _Loss, _WeightedLoss
from gt.nn.modules.module import _addindent
from gt.nn.modules.transformer import _get_clones
from gt.nn.modules.utils import _ntuple, _pair, _quadruple, _single, _triple
from gt.nn.parallel.data_parallel import DataParallel
from gt.nn.parallel.distributed import DistributedDataParallel
from gt.optim.adamw import AdamW
from gt.optim.lr_scheduler import _LRScheduler
from gt.optim.optimizer import Optimizer, required
from gt.profiler import ProfilerActivity, profile, record_function
from gt.serialization import add_safe_globals
from gt.sparse import mm
from gt.types import Device, Number
from gt.utils._pytree import tree_map
from gt.utils.cpp_extension import CUDAExtension, load
from gt.utils.data._utils.collate import default_collate
from gt.utils.data.dataloader import DataLoader, default_collate
from gt.utils.data.dataset import Dataset, Subset, random_split
from gt.utils.data.distributed import DistributedSampler
from gt.utils.data.sampler import BatchSampler, Sampler
from gt.utils.hooks import RemovableHandle
from gt.utils.tensorboard import SummaryWriter
""".strip().splitlines()


@pytest.mark.parametrize("line", IMPORTS)
def test_the_line_runs(line):
    if "tensorboard" in line and not any(map(find_spec, ("tensorboardX", "tensorboard"))):
        pytest.skip(
            "neither tensorboardX nor tensorboard is installed: make test-all installs them"
        )
    exec(line, {})


@pytest.mark.parametrize(
    "name",
    """onnx.export fx.symbolic_trace jit.load jit.ScriptModule export.export cuda.Stream
    distributed.fsdp.FullyShardedDataParallel nn.attention.flex_attention.flex_attention
    sparse.softmax quantization.QuantStub utils.cpp_extension.load
    nested.nested_tensor""".split(),
)
def test_what_gt_lacks_is_told_when_it_is_used(name):
    module, _, own = name.rpartition(".")
    lacking = getattr(importlib.import_module(f"gt.{module}"), own)
    assert not isinstance(gt.ones(1), lacking)
    with pytest.raises(NotImplementedError, match="hint: "):
        lacking(gt.nn.Linear(1, 1), "path")


def test_modules_have_the_classes_of_pytorch():
    modules = gt.nn.modules
    assert modules.conv.Conv2d is gt.nn.Conv2d and modules.utils._pair(3) == (3, 3)
    assert isinstance(gt.nn.BatchNorm2d(1), modules.batchnorm._BatchNorm)
    assert modules.dropout.Dropout is gt.nn.Dropout and gt.utils.data.dataset is not gt.data
    assert modules._addindent("a\nb", 2) == "a\n  b"


def test_names_of_pytorch_modules_lead_to_the_same_names_here():
    torch = pytest.importorskip("torch")
    for name in gt.nn.modules.__dict__:
        theirs = getattr(torch.nn.modules, name, None)
        ours = getattr(gt.nn.modules, name)
        if not isinstance(theirs, types.ModuleType) or not isinstance(ours, types.ModuleType):
            continue
        of_it = {
            each for each in theirs.__dict__.get("__all__", ()) if not each.startswith("Quant")
        }
        assert not {each for each in of_it - set(vars(ours)) if hasattr(gt.nn, each)}, name


def test_settings_of_a_library_are_of_its_module():
    import gt.backends.cudnn as cudnn

    assert cudnn is gt.backends.cudnn and cudnn.conv.fp32_precision == "ieee"
    with pytest.raises(
        AttributeError, match="gt.backends.cudnn has no setting 'benchmrk'.*benchmark"
    ):
        _ = cudnn.benchmrk
    with gt.backends.cuda.sdp_kernel(enable_flash=False):
        assert not gt.backends.cuda.flash_sdp_enabled()
    assert gt.backends.cuda.flash_sdp_enabled()


@pytest.fixture
def group():
    gt.distributed.init_process_group("nccl", init_method="env://")
    yield
    gt.distributed.destroy_process_group()


def test_collectives_of_one_process(group):
    dist, x = gt.distributed, gt.tensor([1.0, 2.0])
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "nccl")
    assert (
        dist.all_reduce(x) is None and dist.all_reduce(x, dist.ReduceOp.MAX, async_op=True).wait()
    )
    gathered = [gt.zeros(2)]
    dist.all_gather(gathered, x)
    dist.broadcast(x, src=0)
    dist.barrier()
    whole, objects = gt.zeros(1, 2), [None]
    dist.all_gather_into_tensor(whole, x)
    dist.all_gather_object(objects, {"a": 1})
    assert gathered[0].equal(x) and whole.tolist() == [[1, 2]] and objects == [{"a": 1}]
    assert dist.get_rank(dist.new_group([0])) == 0
    with pytest.raises(ValueError, match="rank of the current process"):
        dist.send(x, 0)
    with pytest.raises(ValueError, match="expected 1, one per process"):
        dist.all_gather([gt.zeros(2), gt.zeros(2)], x)
    with pytest.raises(ValueError, match="twice"):
        dist.init_process_group("gloo")
    with pytest.raises(AttributeError, match="one process drives all workers"):
        _ = dist.no_such_function


def test_a_group_of_several_processes_is_refused(monkeypatch):
    with pytest.raises(ValueError, match="init_process_group"):
        gt.distributed.get_rank()
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(RuntimeError, match="(?s)rank 1 of 2 processes.*not torchrun"):
        gt.distributed.init_process_group("gloo", rank=1)
    assert not gt.distributed.is_initialized() and gt.distributed.group.WORLD is None


def test_distributed_data_parallel_in_a_group_of_one(group):
    model = gt.nn.Linear(2, 1)
    wrapped = DistributedDataParallel(model, device_ids=[0], find_unused_parameters=True)
    x = gt.ones(3, 2)
    with wrapped.no_sync():
        assert wrapped(x).equal(model(x))
    assert list(wrapped.state_dict()) == ["module.weight", "module.bias"]
    state = dict(wrapped.state_dict())
    gt.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    model.load_state_dict(state)
    with pytest.raises(TypeError, match="no option 'find_unused'"):
        DistributedDataParallel(model, find_unused=True)
    with pytest.raises(RuntimeError, match="not needed"):
        DistributedDataParallel(gt.nn.ReLU())


def _add(number, queue, x):
    queue.put((number, (x + number).tolist()))


def _fail(number):
    raise ValueError(f"process {number} fails")


def test_processes():
    mp = gt.multiprocessing
    with pytest.warns(UserWarning, match="processes get copies"):
        gt.nn.Linear(1, 1).share_memory()
    queue = mp.get_context("spawn").SimpleQueue()
    assert mp.spawn(_add, args=(queue, gt.ones(2)), nprocs=1) is None
    assert queue.get() == (0, [1, 1])
    with pytest.raises(mp.ProcessRaisedException, match="ValueError: process 0 fails"):
        mp.spawn(_fail)


def test_profiles_have_the_named_parts(tmp_path):
    profiler, ready = gt.profiler, []
    with profiler.profile(
        activities=[profiler.ProfilerActivity.CPU],
        schedule=profiler.schedule(wait=1, warmup=1, active=2, repeat=1),
        on_trace_ready=lambda prof: ready.append([e.key for e in prof.events()]),
    ) as prof:
        for _ in range(6):
            with profiler.record_function("forward"):
                gt.ones(2) * 2
            prof.step()
    assert ready == [["forward", "ProfilerStep#2", "forward", "ProfilerStep#3"]]
    table = prof.key_averages().table(sort_by="cuda_time_total", row_limit=2)
    assert len(table.splitlines()) == 6 and str(prof.events()).count("forward") == 2
    prof.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [event["name"] for event in events] == ready[0]
    with gt.autograd.profiler.profile(enabled=False) as off, profiler.record_function("a"):
        pass
    assert off.events() == []


def test_schedules_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    for options in (
        dict(wait=1, warmup=1, active=2),
        dict(wait=0, warmup=1, active=1, repeat=2, skip_first=2),
        dict(wait=2, warmup=1, active=1, skip_first_wait=1),
    ):
        theirs, ours = torch.profiler.schedule(**options), gt.profiler.schedule(**options)
        assert [ours(at).name for at in range(12)] == [theirs(at).name for at in range(12)]
    with pytest.raises(ValueError, match="active is 0"):
        gt.profiler.schedule(wait=1, warmup=1, active=0)


def test_weights_of_an_address_are_kept(tmp_path, monkeypatch, capsys):
    gt.save({"weight": gt.ones(2)}, tmp_path / "there.gt")
    gt.hub.set_dir(tmp_path / "hub")
    try:
        url = (tmp_path / "there.gt").as_uri()
        assert gt.hub.load_state_dict_from_url(url)["weight"].tolist() == [1, 1]
        assert "Downloading" in capsys.readouterr().err
        (tmp_path / "there.gt").unlink()
        assert gt.utils.model_zoo.load_url(url)["weight"].tolist() == [1, 1]
        with pytest.raises(OSError, match="cannot be reached"):
            gt.hub.load_state_dict_from_url((tmp_path / "gone.gt").as_uri())
        (tmp_path / "net-00000000.gt").write_bytes(b"0")
        with pytest.raises(RuntimeError, match="invalid hash value"):
            gt.hub.load_state_dict_from_url(
                (tmp_path / "net-00000000.gt").as_uri(), check_hash=True
            )
        assert sorted(path.name for path in (tmp_path / "hub/checkpoints").iterdir()) == [
            "there.gt"
        ]
    finally:
        monkeypatch.setattr(gt.hub, "_chosen", {})
    with pytest.raises(NotImplementedError, match="load_state_dict_from_url"):
        gt.hub.load("pytorch/vision", "resnet18")


def test_gradients_of_once_differentiable_functions_are_constants():
    from gt.autograd.function import once_differentiable

    class Square(gt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            return grad * 2 * ctx.saved_tensors[0]

    x = gt.tensor([3.0], requires_grad=True)
    (first,) = gt.autograd.grad(Square.apply(x) * x, x, create_graph=True)
    assert first.tolist() == [27]
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


def test_trees_and_times():
    from gt.utils import benchmark
    from gt.utils._pytree import tree_flatten, tree_map, tree_map_only, tree_unflatten

    tree = {"a": [1, 2.0], "b": (3,)}
    assert tree_map(lambda x: x + 1, tree) == {"a": [2, 3.0], "b": (4,)}
    assert tree_map(lambda x, y: x * y, [1, 2], [3, 4]) == [3, 8]
    assert tree_map_only(float, lambda x: 0, tree) == {"a": [1, 0], "b": (3,)}
    assert tree_unflatten(*tree_flatten(tree)) == tree
    timed = benchmark.Timer("x + 1", globals={"x": gt.ones(2)}).blocked_autorange(min_run_time=0.01)
    assert sum(timed.raw_times) >= 0.01 and 0 < timed.median and "x + 1" in repr(timed)
