"""Random operations are counter-based: numbers depend only on seed, instruction and element."""

import gt
import numpy as np
import pytest
from primitives import apply
from processes import run_on_four_workers, run_python, unsharded_only

PINNED = {
    ("rand", "float32"): "d04fcc3ec569613fac573c3fdb001b3f",
    ("rand", "float64"): "705a7835fa89d93f1b609389f58ae73f40968b94991cef3fdf2f619dae34e63f",
    ("randn", "float32"): "b0b66cbf31bb7dbf9f1b1ebfb2d1f63e",
    ("randn", "float64"): "70d032df10a6f0bf82de483351cceb3f9535e8c95691cbbf0e13dcb26b7eb93f",
}


def numbers(name, shape, seed=1, counter=2, *extra, dtype="float64", part=()):
    return apply(name, [seed, counter, *extra], size=shape, dtype=dtype, part=part).numpy()


def test_numbers_follow_from_seed_and_counter():
    for name in ("rand", "randn"):
        first = numbers(name, [4, 5])
        np.testing.assert_array_equal(first, numbers(name, [4, 5]))
        np.testing.assert_array_equal(first.ravel(), numbers(name, [20]))
        np.testing.assert_array_equal(first.ravel()[:7], numbers(name, [7]))
        assert (first != numbers(name, [4, 5], seed=2)).all()
        assert (first != numbers(name, [4, 5], counter=3)).all()


def test_manual_seed_repeats_a_program():
    gt.manual_seed(3)
    first = [gt.randn(5).tolist(), gt.rand(2).tolist(), gt.randint(0, 100, (3,)).tolist()]
    gt.manual_seed(3)
    second = [gt.randn(5).tolist(), gt.rand(2).tolist(), gt.randint(0, 100, (3,)).tolist()]
    assert first == second
    assert first[0] != gt.randn(5).tolist()


def test_distributions():
    uniform, normal = numbers("rand", [100_000]), numbers("randn", [100_000])
    assert 0 <= uniform.min() and uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 0.01 and abs(uniform.var() - 1 / 12) < 0.01
    assert abs(normal.mean()) < 0.02 and abs(normal.std() - 1) < 0.02
    whole = numbers("randint", [10_000], 1, 2, -3, 9, dtype="int64")
    assert set(whole.tolist()) == set(range(-3, 9))


def test_the_numbers_are_these():
    """The bits of random numbers must never change between versions, engines or machines."""
    for (name, dtype), wanted in PINNED.items():
        assert numbers(name, [4], 0, 0, dtype=dtype).tobytes().hex() == wanted, (name, dtype)
    assert numbers("randint", [3], 0, 0, 0, 1000, dtype="int64").tolist() == [399, 735, 972]


def test_every_dtype_stays_in_its_range():
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        uniform = numbers("rand", [200_000], dtype=dtype)
        assert 0 <= uniform.min() and uniform.max() < 1, dtype
        assert np.isfinite(numbers("randn", [200_000], dtype=dtype)).all(), dtype
    for dtype, low, high in [("uint8", 0, 256), ("int8", -128, 128), ("bool", 0, 2)]:
        whole = numbers("randint", [20_000], 1, 2, low, high, dtype=dtype)
        assert len(set(whole.tolist())) == high - low, dtype
    wide = numbers("randint", [1000], 1, 2, -(2**63), 2**63 - 1, dtype="int64")
    assert wide.min() < -(2**61) and wide.max() > 2**61


def test_instructions_and_threads_draw_different_numbers():
    gt.manual_seed(0)
    drawn = [gt.rand(10).numpy() for _ in range(50)]
    assert len({values.tobytes() for values in drawn}) == 50
    both = np.stack([gt.randn(50_000).numpy(), gt.randn(50_000).numpy()])
    assert abs(np.corrcoef(both)[0, 1]) < 0.02


def test_a_part_has_the_numbers_of_the_whole():
    for name, extra in (("rand", ()), ("randn", ()), ("randint", (0, 100))):
        whole = numbers(name, [6, 5], 1, 2, *extra)
        part = numbers(name, [2, 3], 1, 2, *extra, part=[3, 1, 6, 5])
        np.testing.assert_array_equal(part, whole[3:5, 1:4])


def sampled(name, *parameters, seed=1, part=()):
    parameters = [gt.tensor(of, dtype="float64") for of in parameters]
    return apply(name, [seed, 2, *parameters], part=part).numpy()


def test_samplers_that_reject_draw_by_element_and_attempt():
    rates = np.linspace(0, 40, 30).reshape(6, 5)
    for name, parameters in (
        ("draw_poisson", [rates]),
        ("draw_binomial", [np.floor(rates), rates / 40]),
    ):
        whole = sampled(name, *parameters)
        np.testing.assert_array_equal(whole, sampled(name, *parameters))
        assert (whole != sampled(name, *parameters, seed=2)).any()
        part = sampled(name, *(of[3:5, 1:4] for of in parameters), part=[3, 1, 6, 5])
        np.testing.assert_array_equal(part, whole[3:5, 1:4])


@pytest.mark.parametrize("rate", [0.5, 7.0, 10.0, 300.0])
def test_poisson(rate):
    drawn = gt.poisson(gt.full((100_000,), rate)).numpy()
    assert abs(drawn.mean() - rate) < 5 * (rate / 1e5) ** 0.5
    assert abs(drawn.var() / rate - 1) < 0.05
    assert gt.poisson(gt.tensor([0.0, -1.0])).isnan().tolist() == [False, True]


@pytest.mark.parametrize(("count", "prob"), [(10, 0.3), (90, 0.4), (50, 0.9), (1000, 0.02)])
def test_binomial(count, prob):
    drawn = gt.binomial(gt.full((100_000,), float(count)), gt.tensor(prob)).numpy()
    spread = count * prob * (1 - prob)
    assert drawn.min() >= 0 and drawn.max() <= count
    assert abs(drawn.mean() - count * prob) < 5 * (spread / 1e5) ** 0.5
    assert abs(drawn.var() / spread - 1) < 0.05


def test_the_state_can_be_kept_and_set():
    assert gt.manual_seed(7) is gt.default_generator
    gt.rand(3)
    state = gt.get_rng_state()
    assert state.dtype == gt.uint8
    first = [gt.randn(3).tolist(), gt.poisson(gt.full((5,), 3.0)).tolist()]
    gt.set_rng_state(state)
    assert [gt.randn(3).tolist(), gt.poisson(gt.full((5,), 3.0)).tolist()] == first
    assert gt.initial_seed() == 7
    with gt.random.fork_rng():
        gt.manual_seed(1)
        gt.rand(1)
    gt.set_rng_state(state)
    assert gt.randn(3, generator=gt.default_generator).tolist() == first[0]
    assert gt.seed() == gt.initial_seed() != 7
    other = gt.Generator("cpu")
    other.set_state(state)
    assert other.initial_seed() == 7 and gt.randn(3, generator=other).tolist() == first[0]
    with pytest.raises(TypeError, match="set_state: new_state is float32 of shape"):
        gt.set_rng_state(gt.zeros(2))


#: Draws of every kind, as bytes.
DRAWS = """
import gt, hashlib
gt.manual_seed(11)
def show(*tensors):
    for tensor in tensors:
        print(hashlib.sha1(tensor.numpy().tobytes()).hexdigest())
def draws():
    rates = gt.full((12, 7), 20.0)
    counts = rates.clone()
    return (gt.rand(12, 7), gt.randn(12, 7), gt.randn(12, 7, dtype=gt.float64),
            gt.randn(13, 5, dtype=gt.bfloat16), gt.randint(-5, 2**40, (12, 7)), gt.poisson(rates),
            gt.binomial(counts, rates / 50), gt.rand(12, 7).bernoulli(), gt.randperm(20))
"""


SHOW = "show(*draws())"


@unsharded_only
@pytest.mark.parametrize("axis", [0, 1])
def test_any_placement_draws_the_same_bits(axis):
    wanted = run_python(DRAWS + SHOW).stdout
    assert len(set(wanted.split())) == 9
    cut = (
        f'register("cut", axis={axis})\n'
        'with gt.signal.context("cut"):\n'
        "    drawn = draws()\n"
        "show(*drawn)\n"
    )
    assert run_on_four_workers(DRAWS + cut) == wanted


@unsharded_only
@pytest.mark.parametrize("backend", ["numpy", "pytorch", "jax"])
def test_every_engine_draws_the_same_bits(backend):
    if backend != "numpy":
        pytest.importorskip("torch" if backend == "pytorch" else backend)
    done = run_python(DRAWS + SHOW, GT_BACKEND=backend)
    assert done.returncode == 0, done.stderr
    assert done.stdout == run_python(DRAWS + SHOW, GT_BACKEND="native").stdout


@unsharded_only
def test_a_loop_with_dropout_stays_one_hot_path():
    done = run_python(
        "import gt\n"
        "x = gt.ones(64, 8)\n"
        "for step in range(200):\n"
        "    x = (gt.nn.functional.dropout(x, 0.5) + gt.randn(64, 8)).tanh()\n"
        "x.sum().item()\n"
        "stats = list(gt.debug.get_worker_stats().values())[0]\n"
        "print(stats['hotpath']['hot_instructions'], stats['hotpath']['hot_sequences'])\n"
    )
    assert done.returncode == 0, done.stderr
    instructions, sequences = map(int, done.stdout.split())
    assert instructions > 200 and sequences <= 2


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_are_drawn_by_parts(dtype):
    x = gt.randn(20_000, dtype=dtype)
    assert x.dtype.name == dtype and abs(x.abs().square().mean().item() - 1) < 0.05
    parts = gt.view_as_real(gt.rand(2_000, dtype=dtype))
    assert parts.min().item() >= 0 and parts.max().item() < 1
    assert abs(parts.mean().item() - 0.5) < 0.05
