"""Creating tensors: PyTorch's arguments, random number generators, sessions."""

import gt
import pytest


@pytest.mark.filterwarnings("ignore:device 'cuda'")
def test_what_changes_nothing_is_taken():
    t = gt.zeros(2, device="cuda:0", layout=gt.strided, pin_memory=True, requires_grad=True)
    assert t.requires_grad and t.dtype == gt.float32
    assert gt.empty_like(t, memory_format=gt.preserve_format).shape == (2,)
    with pytest.raises(ValueError, match="ones: layout is gt.channels_last"):
        gt.ones(2, layout=gt.channels_last)


def test_a_generator_is_a_source_of_its_own():
    source = gt.Generator().manual_seed(3)
    state = source.get_state()
    first, second = (gt.rand(3, generator=source).tolist() for _ in range(2))
    assert first != second
    source.set_state(state)
    gt.manual_seed(5)
    assert gt.rand(3, generator=source).tolist() == first
    assert source.manual_seed(-1).initial_seed() == 2**64 - 1
    with pytest.raises(TypeError, match="must be a Generator or None, not int"):
        gt.rand(2, generator=7)


@pytest.mark.parametrize(
    "make",
    [
        lambda t: gt.rand_like(t),
        lambda t: gt.randint_like(t, 5),
        lambda t: gt.bernoulli(t),
        lambda t: gt.multinomial(t, 2),
        lambda t: gt.normal(t, 1.0),
        lambda t: gt.linspace(t[0], 5, 3),
        lambda t: gt.full_like(t, t[0]),
        lambda t: t.new_zeros(3),
        lambda t: t.clone().uniform_(),
    ],
)
def test_new_tensors_are_in_the_session_of_the_one_given(make):
    with gt.Session():
        t = gt.ones(3)
        with gt.Session():
            assert (t + make(t)[0]).sum().isfinite().item()


def test_weights_of_zero_are_never_drawn():
    weights = gt.tensor([[0.0, 1.0, 3.0], [2.0, 0.0, 0.0]])
    places = gt.multinomial(weights, 4000, replacement=True)
    assert (places[0] != 0).all().item() and (places[1] == 0).all().item()
    assert abs((places[0] == 2).float().mean().item() - 0.75) < 0.05
    several = gt.multinomial(gt.ones(50, 3), 3)
    assert (several.sum(1) == 3).all().item()


def test_a_name_that_is_missing_has_a_hint():
    with pytest.raises(AttributeError, match="gt has no 'flor'.*\n.*gt.floor"):
        _ = gt.flor
    assert not hasattr(gt, "__nothing__")


def test_limits():
    assert gt.finfo(gt.bfloat16).eps == 2**-7 and gt.finfo().max > 3e38
    assert (gt.iinfo(gt.uint8).min, gt.iinfo("int16").max) == (0, 2**15 - 1)
    with pytest.raises(TypeError, match="hint: gt.iinfo"):
        gt.finfo(gt.int8)
