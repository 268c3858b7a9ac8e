"""`gt.compile` and `Module.compile`: hot from the second call on, with the same results."""

import copy
import pickle

import gt
import pytest
from gt import nn
from processes import run_program, run_python


@pytest.mark.parametrize(
    ("decorator", "counts"),
    [
        ("gt.compile", "12 1"),
        ("gt.compile(mode='reduce-overhead', fullgraph=True, dynamic=False)", "12 1"),
        ("gt.compile(backend='eager')", "0 0"),
        ("gt.compile(disable=True)", "0 0"),
        ("", "0 0"),
    ],
)
def test_a_function_is_hot_from_its_second_call_on(decorator, counts):
    assert run_program("compile/decorated", decorator).stdout == f"{counts}\n"


def test_a_compiled_function_called_inside_another_is_part_of_it():
    assert run_program("compile/nested").stdout == "10 1\n"


def losses(wrap, in_place=False):
    gt.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 3))
    if in_place:
        model.compile()
    optimizer = gt.optim.AdamW(model.parameters(), lr=0.05)
    data, target = gt.randn(12, 6), gt.randint(0, 3, (12,))

    def step(x, y):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    step = wrap(step)
    places = [0, 4, 8, 0, 4, 8, 0, 8]
    return [step(data[at : at + 4], target[at : at + 4]).item() for at in places]


def test_compiled_steps_return_the_same_losses():
    plain = losses(lambda step: step)
    assert len(set(plain)) == 8
    assert losses(gt.compile) == pytest.approx(plain, rel=1e-6)
    assert losses(lambda step: step, in_place=True) == pytest.approx(plain, rel=1e-6)


def test_python_runs_at_each_call():
    seen = []

    @gt.compile
    def scaled(x, factor):
        seen.append(factor)
        return x * factor if factor > 1 else x - 1

    assert [scaled(gt.ones(2), k).tolist() for k in (1, 2, 3)] == [[0, 0], [2, 2], [3, 3]]
    assert seen == [1, 2, 3] and scaled.__name__ == "scaled"
    assert [scaled(gt.ones(n), 5).sum().item() for n in (1, 2, 3, 4)] == [5, 10, 15, 20]


def test_an_error_closes_the_scope():
    @gt.compile
    def wrong(x):
        raise ValueError("mine")

    before = gt.signal.current_signal()
    for _ in range(2):
        with pytest.raises(ValueError, match="mine"):
            wrong(gt.ones(1))
    assert gt.signal.current_signal() == before


def test_the_placement_of_the_enclosing_scope_applies():
    program = (
        "import gt\n"
        "gt.gpu_workers(2)\n"
        "gt.register_config('rows', gt.SignalConfig(gt.ShardConfig(axis=0)))\n"
        "make = gt.compile(lambda: gt.ones(4, 2) * 2)\n"
        "with gt.signal.context('rows'):\n"
        "    made = [make() for _ in range(3)]\n"
        "print([gt.debug.placement(x)[0].workers for x in made], made[2].sum().item())\n"
    )
    done = run_python(program)
    assert done.stdout == "[[0, 1], [0, 1], [0, 1]] 16.0\n", done


def test_a_module_is_wrapped_as_in_pytorch():
    model = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    compiled = gt.compile(model)
    x = gt.randn(4, 3)
    assert (compiled(x) == model(x)).all() and compiled._orig_mod is model
    assert type(compiled).__name__ == "OptimizedModule" and isinstance(compiled, nn.Module)
    assert list(compiled.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    assert next(compiled.parameters()) is model[0].weight and len(compiled) == 2
    compiled.eval()
    assert not model.training and not compiled.training
    compiled.train()
    compiled.note = 3
    assert model[0].training and model.note == 3 and compiled.note == 3
    del compiled.note
    assert not hasattr(model, "note")
    with pytest.raises(AttributeError, match="'Sequential' object has no attribute 'weight'"):
        compiled.weight  # noqa: B018
    assert gt.compile(model, disable=True) is model


@pytest.mark.parametrize("again", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_has_its_own_weights(again):
    compiled, in_place = gt.compile(nn.Linear(3, 2)), nn.Linear(3, 2)
    in_place.compile()
    x = gt.ones(1, 3)
    for model in (compiled, in_place):
        expected, other = model(x).tolist(), again(model)
        assert other(x).tolist() == expected
        with gt.no_grad():
            model.bias.add_(1)
        assert other(x).tolist() == expected and model(x).tolist() != expected


def test_hooks_run_in_a_module_that_compiles_in_place():
    model = nn.Linear(3, 2)
    model.compile(mode="default")
    handle = model.register_forward_hook(lambda module, given, output: output * 0)
    assert model(gt.ones(1, 3)).tolist() == [[0, 0]]
    handle.remove()
    assert model(gt.ones(1, 3)).tolist() != [[0, 0]]
    model.compile(backend="eager")
    assert model._compiled_call_impl is None


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (
            {"backend": "tvm"},
            RuntimeError,
            "Invalid backend: 'tvm', should be one of: inductor, cu",
        ),
        ({"backend": lambda graph, inputs: graph}, TypeError, "traces no graph"),
        ({"mode": "fast"}, RuntimeError, "Unrecognized mode=fast, should be one of: default, "),
        ({"mode": "default", "options": {}}, RuntimeError, "Either mode or options"),
        (
            {"options": {"emulate_precision_casts": True}},
            RuntimeError,
            "Unexpected optimization op",
        ),
        ({"options": {"max_autotune": 3}}, RuntimeError, "got int should be bool"),
        ({"dynamic": 3}, TypeError, "dynamic is 3, expected True, False or None"),
        ({"fullgraph": "yes"}, TypeError, "fullgraph is 'yes', expected True or False"),
    ],
)
def test_invalid_arguments(given, error, message):
    with pytest.raises(error, match=message):
        gt.compile(nn.Linear(1, 1), **given)
    with pytest.raises(error, match=message):
        gt.compile(**given)(lambda x: x)
    with pytest.raises(error, match=message):
        nn.Linear(1, 1).compile(**given)
