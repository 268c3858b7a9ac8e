"""`torch.cluster` has the names of `torch.cuda` and `torch.xpu`, or says what to use instead."""

import inspect
import math

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
device = pytest.importorskip("gt.torch")

import gt  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*(Typed|TypedStorage|set_default_tensor_type)")
HERE = torch.device("cluster", 0)


def is_own(module, name):
    """Return whether a name is a module's own, and not one that it imports for itself."""
    if name in module.__all__:
        return True
    value = getattr(module, name)
    if inspect.ismodule(value):
        return value.__name__.startswith(module.__name__)
    is_error = isinstance(value, type) and issubclass(value, Exception)
    return is_error or getattr(value, "__module__", "").startswith(module.__name__)


def names_of(module):
    public = {name for name in {*dir(module), *module.__all__} if not name.startswith("_")}
    return {name for name in public if is_own(module, name)} - {"torch"}


NAMES = sorted(names_of(torch.cuda) | names_of(torch.xpu))
PARTS = [
    ("memory", torch.cuda.memory),
    ("memory", torch.xpu.memory),
    ("random", torch.cuda.random),
    ("graphs", torch.cuda.graphs),
    ("nvtx", torch.cuda.nvtx),
    ("amp", torch.cuda.amp),
]
#: How to call what works, where not without arguments.
ARGUMENTS = {
    "Event": {"enable_timing": True},
    "GradScaler": {},
    "StreamContext": {"stream": None},
    "can_device_access_peer": {"device": 0, "peer_device": 0},
    "device": {"device": 0},
    "device_of": {"obj": torch.ones(1)},
    "make_graphed_callables": {"callables": math.sin, "sample_args": (1.0,)},
    "manual_seed": {"seed": 1},
    "manual_seed_all": {"seed": 1},
    "mark": {"msg": "a"},
    "range": {"msg": "a"},
    "range_push": {"msg": "a"},
    "set_per_process_memory_fraction": {"fraction": 1.0},
    "range_start": {"msg": "a"},
    "range_end": {"range_id": 1},
    "set_device": {"device": HERE},
    "set_stream": {"stream": None},
    "set_sync_debug_mode": {"debug_mode": 0},
    "stream": {"stream": None},
}


def check(module, name):
    """A name is an attribute that can be called, or its error says in one line what to use."""
    if not hasattr(module, name):
        with pytest.raises(AttributeError, match=rf"{module.__name__[3:]} has no '{name}': ."):
            getattr(module, name)
        try:
            getattr(module, name)
        except AttributeError as error:
            assert "\n" not in str(error)
        assert name not in dir(module)
        return
    value = getattr(module, name)
    if name == "set_rng_state":
        value(module.get_rng_state())
    elif name == "set_rng_state_all":
        value(module.get_rng_state_all())
    elif name in ("custom_bwd", "custom_fwd"):
        value(math.sin)
    elif name in ("AcceleratorError", "OutOfMemoryError"):
        assert issubclass(value, RuntimeError)
    elif callable(value):
        value(**ARGUMENTS.get(name, {}))


@pytest.mark.filterwarnings("ignore:.*deprecated")
@pytest.mark.parametrize("name", NAMES)
def test_a_name(name):
    check(torch.cluster, name)


@pytest.mark.filterwarnings("ignore:.*deprecated")
@pytest.mark.parametrize("part,other", PARTS)
def test_a_part(part, other):
    for name in other.__all__:
        if name != "amp_definitely_not_available":
            check(getattr(torch.cluster, part), name)


def test_there_are_names():
    """The enumeration finds the names that programs use."""
    assert {"FloatTensor", "memory_stats", "amp", "Stream", "CUDAGraph", "XPUGraph"} <= {*NAMES}
    assert set(torch.cluster.__all__) <= set(dir(torch.cluster))
    with pytest.raises(AttributeError, match="module 'torch.cluster' has no attribute 'none'"):
        torch.cluster.none  # noqa: B018


def test_memory():
    """Numbers of bytes are those of the storages and of the workers."""
    before = torch.cluster.memory_allocated()
    held = torch.ones(1000, device="cluster")
    torch.cluster.synchronize()
    torch.cluster.reset_peak_memory_stats()
    brief = torch.ones(5000, device="cluster")
    torch.cluster.synchronize()
    del brief
    stats = torch.cluster.memory_stats()
    assert stats["allocated_bytes.all.current"] == torch.cluster.memory_allocated()
    assert torch.cluster.memory_allocated() - before == held.nbytes == 4000
    assert stats["allocated_bytes.all.peak"] >= before + 4000 + 20000
    workers = gt.debug.get_worker_stats()
    for name, of in workers.items():
        assert stats[f"workers.{name}.bytes"] == of["memory"]["bytes"]
        assert name in torch.cluster.memory_summary()
        assert name not in torch.cluster.memory_summary(abbreviated=True)
    nested = torch.cluster.memory_stats_as_nested_dict()
    assert nested["allocated_bytes"]["all"]["current"] == stats["allocated_bytes.all.current"]
    assert torch.cluster.device_memory_used() >= 0
    assert "worker" in torch.cluster.list_gpu_processes()


def test_memory_of_the_host(monkeypatch):
    """The free and the total memory are known in this process, and limited by GT_MEMORY."""
    torch.ones(3, device="cluster").sum().item()
    free, total = torch.cluster.mem_get_info()
    assert 0 < free <= total == torch.cluster.get_device_properties(0).total_memory
    monkeypatch.setenv("GT_MEMORY", "1MB")
    free, total = torch.cluster.mem_get_info()
    assert free <= total == 10**6 * len(gt.debug.get_worker_stats())


def test_random_numbers():
    """States and seeds, also of the default generator, are those of the session."""
    states = torch.cluster.get_rng_state_all()
    first = torch.rand(3, device="cluster")
    torch.cluster.set_rng_state_all(states)
    assert torch.rand(3, device="cluster").equal(first)
    with pytest.raises(RuntimeError, match="got 2 states, but there is one device"):
        torch.cluster.set_rng_state_all(states * 2)
    (generator,) = torch.cluster.default_generators
    assert generator.device == HERE
    assert generator.manual_seed(5) is generator
    assert generator.initial_seed() == torch.cluster.initial_seed() == 5
    drawn = torch.rand(3, device="cluster", generator=generator)
    torch.cluster.manual_seed(5)
    state = generator.get_state()
    assert torch.rand(3, device="cluster").equal(drawn)
    generator.set_state(state)
    assert torch.rand(3, device="cluster").equal(drawn)
    assert generator.seed() == torch.cluster.initial_seed()


def test_types_of_tensors():
    """Early PyTorch's types: constructors, conversions, and checks of instances."""
    kinds = torch.cluster
    x = kinds.FloatTensor([1, 2])
    assert x.device == HERE and x.dtype == torch.float32 and x.tolist() == [1.0, 2.0]
    assert kinds.LongTensor(2, 3).shape == kinds.LongTensor(torch.Size([2, 3])).shape == (2, 3)
    assert kinds.HalfTensor().numel() == 0
    assert isinstance(x, kinds.FloatTensor) and not isinstance(x, kinds.DoubleTensor)
    assert not isinstance(x.cpu(), kinds.FloatTensor)
    assert x.type() == "torch.cluster.FloatTensor"
    assert x.cpu().type(kinds.IntTensor).type() == "torch.cluster.IntTensor"
    storage = kinds.FloatStorage([1.0, 2.0])
    assert storage.device == HERE and storage.tolist() == [1.0, 2.0]
    assert isinstance(storage, kinds.FloatStorage)
    assert not isinstance(x.cpu().storage(), kinds.FloatStorage)


def test_default_tensor_type():
    """The default type sets dtype and device, until it is a type of the CPU."""
    try:
        for kind in ("torch.cluster.DoubleTensor", torch.cluster.DoubleTensor):
            torch.set_default_tensor_type(kind)
            x, y = torch.ones(2), torch.tensor([1.5])
            assert x.device == y.device == HERE
            assert x.dtype == y.dtype == torch.get_default_dtype() == torch.float64
        with pytest.raises(TypeError, match="only floating-point types"):
            torch.set_default_tensor_type(torch.cluster.LongTensor)
    finally:
        torch.set_default_tensor_type(torch.FloatTensor)
    assert torch.ones(2).device.type == "cpu" and torch.ones(2).dtype == torch.float32
    assert torch.get_default_device().type == "cpu"
    assert gt.ones(2).dtype == gt.float32


def test_amp():
    """The deprecated names are those of `torch.amp`, and warn."""
    from torch.cluster.amp import GradScaler, autocast, custom_bwd, custom_fwd

    x = torch.ones(2, 2, device="cluster", requires_grad=True)
    with pytest.warns(FutureWarning, match="torch.amp.autocast"), autocast(dtype=torch.bfloat16):
        assert (x @ x).dtype == torch.bfloat16
    with pytest.warns(FutureWarning, match="deprecated"):
        scaler = GradScaler(init_scale=8.0)
    assert scaler.scale(x.sum()).item() == 32.0
    with pytest.warns(FutureWarning, match="deprecated"):

        class Square(torch.autograd.Function):
            @staticmethod
            @custom_fwd(cast_inputs=torch.float32)
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            @custom_bwd
            def backward(ctx, grad):
                return 2 * ctx.saved_tensors[0] * grad

    with torch.autocast("cluster"):
        assert Square.apply(x.half()).dtype == torch.float32


def test_ranges_are_profiled():
    from torch.cluster import nvtx

    with torch.profiler.profile() as profile:
        assert nvtx.range_push("outer") == 0
        assert nvtx.range_push("inner") == 1
        number = nvtx.range_start("other")
        nvtx.mark("moment")
        assert [nvtx.range_pop(), nvtx.range_pop(), nvtx.range_pop()] == [1, 0, -1]
        nvtx.range_end(number)
        with nvtx.range("item {}", 3):
            pass
    names = {event.key for event in profile.key_averages()}
    assert names >= {"outer", "inner", "other", "moment", "item 3"}


def test_copies_between_devices():
    """All devices are cluster:0."""
    from torch.cluster import comm

    x = torch.arange(6.0, device="cluster").reshape(3, 2)
    assert [one.tolist() for one in comm.broadcast(x, [0, 0])] == [x.tolist()] * 2
    parts = comm.scatter(x, [0, HERE])
    assert [len(part) for part in parts] == [2, 1]
    assert [len(part) for part in comm.scatter(x, [0, 0], chunk_sizes=[1, 2])] == [1, 2]
    assert comm.gather(parts).equal(x)
    assert comm.gather(parts, destination="cpu").equal(x.cpu())
    assert comm.reduce_add([x, x, x]).equal(3 * x)
    assert [of.tolist() for of in comm.reduce_add_coalesced([[x, x], [x, x]])] == [
        (2 * x).tolist()
    ] * 2
    assert len(comm.broadcast_coalesced([x, x], [0])[0]) == 2
    out = torch.zeros(3, 2, device="cluster")
    assert comm.gather(parts, out=out) is out and out.equal(x)
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        comm.broadcast(x, [0, 1])


def test_streams():
    stream = torch.cluster.Stream()
    with torch.cluster.stream(stream) as entered:
        event = stream.record_event(torch.cluster.Event(enable_timing=True))
    assert entered is stream == torch.cluster.current_stream()
    end = torch.cluster.Event(enable_timing=True)
    end.record()
    assert 0 <= event.elapsed_time(end) < 60_000
    assert len({stream, torch.cluster.Stream(), torch.cluster.current_stream()}) == 1
    x = torch.ones(3, device="cluster")
    for one in (stream, torch.Stream("cluster"), torch.accelerator.current_stream()):
        assert isinstance(one, torch.Stream)
        x.record_stream(one)
        one.wait_stream(stream)
        one.wait_event(event)
        torch.Event("cluster").record(one)
        one.synchronize()
    assert x.tolist() == [1.0] * 3
    with pytest.raises(RuntimeError, match="only the mode 'default', not 'warn'"):
        torch.cluster.set_sync_debug_mode("warn")


@pytest.mark.parametrize(
    "name",
    "set_device get_device_name get_device_capability get_device_properties synchronize "
    "memory_allocated max_memory_reserved memory_stats memory_summary mem_get_info "
    "reset_peak_memory_stats get_rng_state current_stream".split(),
)
def test_a_device_that_does_not_exist_is_an_error(name):
    function = getattr(torch.cluster, name)
    function(0), function("cluster"), function(HERE)
    for wrong in (9, "cluster:9", torch.device("cluster", 9)):
        with pytest.raises(RuntimeError, match="^cluster:9: invalid device ordinal, there is 1"):
            function(wrong)
    with pytest.raises(ValueError, match="^Expected a cluster device, but got: cpu$"):
        function("cpu")


def test_the_fraction_of_memory_is_checked_and_kept():
    assert torch.cluster.get_allocator_backend() == torch.cuda.get_allocator_backend() == "native"
    change = torch.cluster.set_per_process_memory_fraction
    assert torch.cluster.get_per_process_memory_fraction() == 1
    with pytest.raises(TypeError, match="must be `float`, not str"):
        change("a")
    with pytest.raises(ValueError, match="Invalid fraction value: 1.5. Allowed range: 0~1"):
        change(1.5)
    with pytest.warns(UserWarning, match=r"`gt server --policy` limits a user, and not .* 0\.5"):
        change(0.5)
    assert torch.cluster.get_per_process_memory_fraction() == 0.5
    change(1.0)
