"""Collectives of several PyTorch engines in threads of this process, by Gloo."""

import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from gt.engines import Engine, load
from gt.engines.collectives import Group, Settings, agreed
from gt.engines.engine import ITEM_BYTES, Meta

GLOO = Settings("gloo", timeout=20)


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="pytorch: make test-all")


def members(count, settings=GLOO):
    """Return the collectives of `count` engines on the CPU."""
    from gt.engines.pytorch import PyTorchEngine

    return [PyTorchEngine("cpu").collectives(settings) for _ in range(count)]


def together(those, way, gives, gets, root=None, epoch=0):
    """Carry out a collective on all members; return each member's result or error."""
    numbers = tuple(range(10, 10 + len(those)))
    names = tuple(f"w{number}" for number in numbers)

    def join(rank):
        group = Group(those[0].store, numbers, names, rank, epoch)
        try:
            return those[rank].join(group, way, root, gives[rank], gets[rank])
        except ConnectionError as error:
            return error

    with ThreadPoolExecutor(len(those)) as threads:
        return list(threads.map(join, range(len(those))))


def values(torch, meta, seed):
    """Return a tensor of numbers that no dtype rounds, with a NaN if the dtype has one."""
    made = torch.randint(0, 2 if meta.dtype == "bool" else 100, meta.shape).to(
        getattr(torch, meta.dtype)
    )
    made += seed if meta.dtype != "bool" else False
    if meta.dtype.startswith(("float", "bfloat")) and made.numel():
        made.view(-1)[0] = float("nan")
    return made


def same(torch, got, want):
    bits = [tensor.contiguous().view(-1).view(torch.uint8) for tensor in (got, want)]
    return got.dtype == want.dtype and got.shape == want.shape and torch.equal(*bits)


@pytest.mark.parametrize("dtype", ITEM_BYTES)
@pytest.mark.parametrize("size", [2, 3])
def test_every_dtype_is_moved_to_the_bit(torch, dtype, size):
    those = members(size)
    ranks = range(size)
    meta = Meta(dtype, (3, 5))
    own = [values(torch, meta, rank) for rank in ranks]
    # A tensor that is not contiguous.
    own[0] = own[0].t().contiguous().t()
    others = [[(of, meta) for of in ranks if of != rank] for rank in ranks]
    made = together(those, "all_gather", [[(rank, own[rank])] for rank in ranks], others)
    for rank in ranks:
        assert all(
            same(torch, got, own[of]) for got, (of, _) in zip(made[rank], others[rank], strict=True)
        )
    gives = [[(1, own[1])] if rank == 1 else [] for rank in ranks]
    gets = [[] if rank == 1 else [(1, meta)] for rank in ranks]
    made = together(those, "broadcast", gives, gets, root=1)
    assert made[1] == [] and same(torch, made[0][0], own[1])
    # Blocks of uneven sizes, an empty one, a 0-d one, and two for the same rank.
    shapes = {(0, 1): [(2, 3), (4,)], (1, 0): [()], (size - 1, 0): [(0, 7), (5, 1)]}
    sent = {
        pair: [values(torch, Meta(dtype, shape), 1) for shape in each]
        for pair, each in shapes.items()
    }
    gives, gets, wants = ([[] for _ in ranks] for _ in range(3))
    for (of, to), each in shapes.items():
        gives[of] += [(to, one) for one in sent[of, to]]
        gets[to] += [(of, Meta(dtype, shape)) for shape in each]
        wants[to] += sent[of, to]
    made = together(those, "all_to_all", gives, gets)
    for got, want in zip(made, wants, strict=True):
        assert all(same(torch, *pair) for pair in zip(got, want, strict=True)), (got, want)


@pytest.mark.parametrize("size", [2, 3])
def test_sums_are_the_same_everywhere(torch, size):
    those = members(size)
    assert those[0].adds == {"int32", "int64", "float32", "float64"}
    ranks = range(size)
    for dtype in sorted(those[0].adds):
        parts = [torch.randn(6, 1000).mul(50).to(getattr(torch, dtype)) for _ in ranks]
        before = [part.clone() for part in parts]
        gives = [[(rank, parts[rank])] for rank in ranks]
        gets = [[(rank, Meta(dtype, (6, 1000)))] for rank in ranks]
        made = together(those, "all_reduce", gives, gets)
        assert all(same(torch, one, made[0][0]) for (one,) in made)
        torch.testing.assert_close(made[0][0], sum(before))
        assert all(same(torch, *pair) for pair in zip(parts, before, strict=True)), "untouched"
        cut = 6 // size
        gives = [[(to, part[cut * to : cut * (to + 1)]) for to in ranks] for part in parts]
        gets = [[(rank, Meta(dtype, (cut, 1000)))] for rank in ranks]
        made = together(those, "reduce_scatter", gives, gets)
        torch.testing.assert_close(torch.cat([one for (one,) in made]), sum(before))


def test_who_does_not_come_is_named_after_a_while(torch):
    first, second = members(2, Settings("gloo", timeout=1))
    group = Group(first.store, (1, 2), ("here", "elsewhere"), 0, 0)
    gives, gets = [(0, torch.ones(3))], [(0, Meta("float32", (3,)))]
    start = time.monotonic()
    with pytest.raises(ConnectionError, match="waited for 'elsewhere' for at most 1 s"):
        first.join(group, "all_reduce", None, gives, gets)
    assert time.monotonic() - start < 10


def test_a_group_that_failed_is_made_anew(torch):
    those = members(2)
    gives = [[(rank, torch.ones(3))] for rank in range(2)]
    gets = [[(rank, Meta("float32", (3,)))] for rank in range(2)]
    assert together(those, "all_reduce", gives, gets)[0][0].tolist() == [2, 2, 2]
    # One member closes the group without notice: the other member's call fails.
    those[1].leave(10)
    group = Group(those[0].store, (10, 11), ("w10", "w11"), 0, 0)
    with pytest.raises(ConnectionError, match="waited for 'w11'"):
        those[0].join(group, "all_reduce", None, gives[0], gets[0])
    made = together(those, "all_reduce", gives, gets, epoch=1)
    assert made[0][0].tolist() == made[1][0].tolist() == [2, 2, 2]


def test_nothing_listens_beyond_the_machine(torch):
    (one,) = members(1)
    assert one.local and one.store.startswith("127.0.0.1:")
    port = int(one.store.rpartition(":")[2])
    own = [address[4][0] for address in socket.getaddrinfo(socket.gethostname(), None)]
    for address in {address for address in own if not address.startswith(("127.", "::1"))}:
        with pytest.raises(OSError):
            socket.create_connection((address, port), timeout=1).close()


def test_settings(monkeypatch):
    for name in list(os.environ):
        if name.startswith("GT_COLLECTIVES"):
            monkeypatch.delenv(name)
    assert Settings.from_environment() == Settings("auto", None, 120)
    monkeypatch.setenv("GT_COLLECTIVES", "mpi")
    with pytest.raises(ValueError, match="is 'mpi', expected one of auto, off, nccl, gloo$"):
        Settings.from_environment()
    monkeypatch.setenv("GT_COLLECTIVES", "gloo")
    for given in ("soon", "0", "-1", "inf"):
        monkeypatch.setenv("GT_COLLECTIVES_TIMEOUT", given)
        with pytest.raises(ValueError, match=f"is '{given}', expected seconds"):
            Settings.from_environment()
    monkeypatch.setenv("GT_COLLECTIVES_TIMEOUT", "2.5")
    assert Settings.from_environment() == Settings("gloo", None, 2.5)
    for engine, name in ((None, "native"), (load("numpy"), "numpy")):
        with pytest.raises(ValueError, match=f"'gloo', but the engine '{name}' has no collect"):
            agreed(engine, name)
    for kind in ("auto", "off"):
        monkeypatch.setenv("GT_COLLECTIVES", kind)
        assert agreed(None, "native") is None


def test_what_nobody_asked_for_may_fail(monkeypatch, capsys):
    class Broken(Engine):
        def collectives(self, settings):
            raise RuntimeError("no driver")

    monkeypatch.setenv("GT_COLLECTIVES", "auto")
    assert agreed(Broken(), "broken") is None
    told = "gt worker: no collectives with other workers (GT_COLLECTIVES): no driver\n"
    assert capsys.readouterr().err == told
    monkeypatch.setenv("GT_COLLECTIVES", "nccl")
    with pytest.raises(RuntimeError, match="no driver"):
        agreed(Broken(), "broken")


def test_what_pytorch_agrees_to(torch):
    from gt.engines.pytorch import PyTorchEngine

    engine = PyTorchEngine("cpu")
    assert engine.collectives(Settings("auto")) is None, "not unless asked for"
    assert engine.collectives(GLOO).kind == f"gloo/{torch.__version__}"
    with pytest.raises(ValueError, match="'nccl', but this worker computes on cpu: expected gloo"):
        engine.collectives(Settings("nccl"))
    with pytest.raises(ValueError, match="'nowhere', which has no IPv4 address.*lo"):
        engine.collectives(Settings("gloo", "nowhere"))
