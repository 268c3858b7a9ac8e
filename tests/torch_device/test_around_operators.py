"""What programs use around operators: generators, loaders, default device, flex_attention."""

import copy
import pickle
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
device = pytest.importorskip("gt.torch")

pytestmark = pytest.mark.filterwarnings("ignore")


def test_copies_of_generators():
    """Copies, pickles and clones draw the same numbers, on the device."""
    for copied in (
        copy.deepcopy,
        lambda g: pickle.loads(pickle.dumps(g)),
        lambda g: g.clone_state(),
    ):
        generator = torch.Generator("cluster").manual_seed(3)
        other = copied(generator)
        assert other.device.type == "cluster" and other.initial_seed() == 3
        drawn = torch.rand(4, device="cluster", generator=generator)
        assert torch.rand(4, device="cluster", generator=other).equal(drawn)
    (default,) = torch.cluster.default_generators
    assert copy.deepcopy(default) is pickle.loads(pickle.dumps(default)) is default


def test_default_device():
    """Modules, loaders and factories follow `torch.set_default_device`."""
    torch.set_default_device("cluster")
    try:
        rows = torch.utils.data.TensorDataset(torch.arange(6.0))
        batches = [batch for (batch,) in torch.utils.data.DataLoader(rows, 2, shuffle=True)]
        made = [torch.nn.Linear(2, 2).weight, torch.randperm(4), torch.tensor([1]), *batches]
    finally:
        torch.set_default_device(None)
    assert {one.device.type for one in made} == {"cluster"}
    assert sorted(torch.cat(batches).tolist()) == list(range(6))


@pytest.mark.parametrize("workers", [0, 1])
def test_loaders_with_pinned_memory(workers):
    rows = torch.utils.data.TensorDataset(torch.arange(6.0))
    loader = torch.utils.data.DataLoader(
        rows, 2, num_workers=workers, pin_memory=True, pin_memory_device="cluster"
    )
    found = [batch.to("cluster", non_blocking=True).tolist() for (batch,) in loader]
    assert found == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]


def test_images(tmp_path):
    """`save_image` and `make_grid` take images of the device."""
    torchvision = pytest.importorskip("torchvision")
    images = torch.rand(4, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    paths = [tmp_path / "cpu.png", tmp_path / "cluster.png"]
    for path, given in zip(paths, (images, images.to("cluster")), strict=True):
        torchvision.utils.save_image(given, path, normalize=True, nrow=2)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def attended(place, compiles):
    """Return `flex_attention` of a causal mask and a bias that depends on distance, and a grad."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    generator = torch.Generator().manual_seed(0)
    given = [torch.randn(1, 2, 128, 16, generator=generator).to(place) for _ in range(3)]
    if place != "cpu":
        given = [one.requires_grad_() for one in given]
    mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 128, 128, device=place)
    function = torch.compile(flex_attention) if compiles else flex_attention
    return given, function(
        *given, score_mod=lambda score, b, h, q, k: score + (k - q) * 0.1, block_mask=mask
    )


@pytest.mark.parametrize("compiles", [False, True])
def test_flex_attention(compiles):
    """Eager and compiled, with gradients, which PyTorch's CPU does not have for it."""
    given, found = attended("cluster", compiles)
    assert torch.allclose(found.cpu(), attended("cpu", False)[1], atol=1e-5)
    found.pow(2).sum().backward()
    query, key, value = (one.detach().cpu().requires_grad_() for one in given)
    at = torch.arange(128)
    distance = (at[None] - at[:, None]) * 0.1
    bias = torch.where(distance <= 0, distance, -torch.inf)
    output = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)
    output.pow(2).sum().backward()
    for one, expected in zip(given, (query, key, value), strict=True):
        assert torch.allclose(one.grad.cpu(), expected.grad, atol=1e-4)
    torch._dynamo.reset()


@pytest.mark.parametrize("first", ["gt.torch", "torch.nn.attention.flex_attention"])
def test_flex_attention_imported_before_or_after(first):
    """The order of imports does not matter, and GT has one import hook for all packages."""
    program = (
        f"import torch, sys, {first}\n"
        "import gt.torch\n"
        "from torch.nn.attention.flex_attention import flex_attention\n"
        "x = torch.ones(1, 1, 128, 16, device='cluster')\n"
        "print(flex_attention(x, x, x).sum().item())\n"
        "print(sum('gt' in type(one).__module__ for one in sys.meta_path))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["2048.0", "1"], done.stderr


@pytest.mark.parametrize("device", ["cpu", "cluster"])
def test_data_parallel_calls_the_module_where_it_is(device):
    """The device is one: there is nothing to scatter to, and a module on the CPU stays there."""
    model = torch.nn.Linear(3, 2).to(device)
    inputs = torch.randn(4, 3, device=device)
    parallel = torch.nn.DataParallel(model)
    assert torch.equal(parallel(inputs).cpu(), model(inputs).cpu())
    assert {of.device.type for of in parallel.parameters()} == {device}
