"""`torch.accelerator`: PyTorch's names for whichever accelerator a machine has."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
device = pytest.importorskip("gt.torch")

MEMORY = (
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
)


def test_the_device():
    accelerator = torch.accelerator
    assert accelerator.is_available() and accelerator.device_count() == 1
    assert accelerator.current_accelerator() == torch.device("cluster")
    assert accelerator.current_device_index() == 0
    accelerator.set_device_index(0)
    accelerator.set_stream(torch.Stream(device="cluster"))
    assert accelerator.current_stream().device == torch.device("cluster", 0)
    assert torch.get_device_module() is torch.cluster
    with accelerator.device_index(0):
        assert torch.ones(1, device=accelerator.current_accelerator()).is_cluster


def test_events():
    """`torch.Event` measures time on the device; events without timing remain PyTorch's."""
    start, end = (torch.Event(enable_timing=True) for _ in range(2))
    start.record()
    torch.accelerator.current_stream().record_event(end)
    assert 0 <= start.elapsed_time(end) < 60_000
    plain = torch.Event("cluster")
    for event in (start, plain, torch.cluster.Event()):
        assert isinstance(event, torch.Event) and event.device.type == "cluster"
        event.record()
        event.wait()
        event.synchronize()
        assert event.query()
    assert issubclass(torch.cluster.Event, torch.Event) and hasattr(torch.Event, "elapsed_time")


def test_memory():
    """The numbers are those of `torch.cluster`."""
    held = torch.ones(500, device="cluster")
    for name in MEMORY:
        if hasattr(torch.accelerator, name):
            expected = getattr(torch.cluster, name)()
            for given in ((), (0,), ("cluster",), (held.device,)):
                assert getattr(torch.accelerator, name)(*given) == expected
    assert torch.accelerator.memory_allocated() >= held.nbytes
    torch.accelerator.reset_peak_memory_stats()
    assert torch.accelerator.max_memory_allocated() == torch.accelerator.memory_allocated()
    torch.accelerator.reset_accumulated_memory_stats()
    torch.accelerator.empty_cache()
    torch.accelerator.synchronize()
    torch.accelerator.synchronize(held.device)
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.accelerator.memory_allocated(1)


@pytest.mark.skipif(
    not hasattr(torch.accelerator, "get_device_capability"), reason="PyTorch is too old"
)
def test_capability():
    """Each of the dtypes can be used."""
    for dtype in torch.accelerator.get_device_capability()["supported_dtypes"]:
        assert torch.ones(2, dtype=dtype, device="cluster").cpu().equal(torch.ones(2, dtype=dtype))


@pytest.mark.skipif(not hasattr(torch.accelerator, "random"), reason="PyTorch is too old")
def test_random_numbers():
    random = torch.accelerator.random
    torch.manual_seed(7)
    assert random.initial_seed() == random.initial_seed(0) == 7
    assert random.get_rng_state("cluster").equal(torch.cluster.get_rng_state())
    (state,) = random.get_rng_state_all()
    drawn = torch.rand(2, device="cluster")
    torch.cluster.set_rng_state(state)
    assert torch.rand(2, device="cluster").equal(drawn)
