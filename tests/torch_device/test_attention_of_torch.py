"""Attention on the device "cluster", compared with the CPU."""

from functools import partial

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
device = pytest.importorskip("gt.torch")
F = torch.nn.functional


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("mask", [None, "causal", "pairs", "batch", "added", "nothing seen"])
@pytest.mark.parametrize("heads", [(4, 4), (4, 2), (4, 1)])
def test_attention(heads, mask, dtype):
    """Attention with all kinds of masks, with heads that share keys, and with all gradients."""
    generator = torch.Generator().manual_seed(0)
    draw = partial(torch.randn, generator=generator, dtype=dtype)
    query, key, value = draw(2, heads[0], 5, 8), draw(2, heads[1], 5, 8), draw(2, heads[1], 5, 8)
    seen = {
        None: None,
        "causal": None,
        "pairs": draw(5, 5) > -0.5,
        "batch": draw(2, 1, 5, 5) > -0.5,
        "added": draw(2, heads[0], 5, 5),
        "nothing seen": torch.arange(5)[:, None].expand(5, 5) > 0,
    }[mask]
    weight = draw(2, heads[0], 5, 8)

    def run(device):
        given = [of.to(device).requires_grad_() for of in (query, key, value)]
        found = F.scaled_dot_product_attention(
            *given,
            attn_mask=None if seen is None else seen.to(device),
            is_causal=mask == "causal",
            enable_gqa=heads[0] != heads[1],
        )
        (found * weight.to(device)).sum().backward()
        with torch.inference_mode():
            again = F.scaled_dot_product_attention(
                *given,
                attn_mask=None if seen is None else seen.to(device),
                is_causal=mask == "causal",
                enable_gqa=heads[0] != heads[1],
            )
        assert torch.allclose(again, found)
        return [found.detach().cpu(), *(of.grad.cpu() for of in given)]

    for found, expected in zip(run("cluster"), run("cpu"), strict=True):
        assert torch.allclose(found, expected, atol=1e-5), (found - expected).abs().max()


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_attention_of_functions():
    """The result has the query's memory layout; gradients by `torch.func`, also with vmap."""
    x = torch.randn(2, 5, 4 * 8, generator=torch.Generator().manual_seed(0))

    def attended(x):
        heads = x.view(x.shape[0], x.shape[1], 4, 8).transpose(1, 2)
        found = F.scaled_dot_product_attention(heads, heads, heads)
        return found.transpose(1, 2).view(x.shape)

    def squared(x):
        return F.scaled_dot_product_attention(x, x, x).pow(2).sum()

    assert torch.allclose(attended(x.to("cluster")).cpu(), attended(x), atol=1e-5)
    batch = x.view(2, 5, 4, 8)
    wanted = torch.func.vmap(torch.func.grad(squared))(batch)
    found = torch.func.vmap(torch.func.grad(squared))(batch.to("cluster"))
    assert torch.allclose(found.cpu(), wanted, atol=1e-4)


@pytest.mark.filterwarnings("ignore")
def test_compiled_attention():
    """Attention in `torch.compile`, with gradients."""
    x = torch.randn(2, 4, 5, 8, generator=torch.Generator().manual_seed(0))
    expected = x.clone().requires_grad_()
    F.scaled_dot_product_attention(expected, expected, expected).pow(2).sum().backward()
    for backend in ("gt", "aot_eager"):
        torch._dynamo.reset()
        found = x.to("cluster").requires_grad_()
        compiled = torch.compile(lambda a: F.scaled_dot_product_attention(a, a, a), backend=backend)
        compiled(found).pow(2).sum().backward()
        assert torch.allclose(found.grad.cpu(), expected.grad, atol=1e-4)


def test_attention_refuses():
    """Errors are those of PyTorch."""
    one = torch.ones(1, 2, 3, 4, device="cluster")
    attend = F.scaled_dot_product_attention
    for mask in (torch.ones(1, 1, 1, 3, 3), torch.ones(2, 5)):
        with pytest.raises((RuntimeError, IndexError, ValueError)):
            attend(one, one, one, attn_mask=mask.to("cluster"))
    with pytest.raises(RuntimeError, match="to have the same dtype"):
        attend(one, one.double(), one)
    with pytest.raises(RuntimeError, match="at least 2 dimensional"):
        attend(one[0, 0, 0], one[0, 0, 0], one[0, 0, 0])
    efficient = torch.nn.attention.SDPBackend.EFFICIENT_ATTENTION
    with torch.nn.attention.sdpa_kernel(efficient):
        with pytest.raises(RuntimeError, match="No viable backend"):
            attend(one, one, one)
