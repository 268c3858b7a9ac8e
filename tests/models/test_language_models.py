"""The language models of examples/models against Hugging Face's."""

import gt
import numpy as np
import pytest
from gt.nn import functional as F
from hugging_face import (
    FAMILIES,
    VOCABULARY,
    both_models,
    padded_ids,
    positions_of,
    relative_error,
    some_ids,
    torch,
    transformers,
)

from generation import choose, filter_logits, generate  # isort: skip

NAMES = pytest.mark.parametrize("name", list(FAMILIES))
TIED = pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])


@NAMES
@TIED
def test_logits_and_all_gradients(name, tied, tmp_path):
    theirs, ours = both_models(name, tied, tmp_path)
    ids = some_ids(3, 12)
    want = theirs(torch.tensor(ids)).logits
    got = ours(gt.tensor(ids))
    assert relative_error(got.detach().numpy(), want.detach().numpy()) < 1e-4
    torch_loss(want, torch.tensor(ids)).backward()
    gt_loss(got, gt.tensor(ids)).backward()
    gradients = {key: p.grad.numpy() for key, p in theirs.named_parameters()}
    assert gradients.keys() == dict(ours.named_parameters()).keys()
    for key, parameter in ours.named_parameters():
        assert relative_error(parameter.grad.numpy(), gradients[key]) < 1e-4, key


def torch_loss(logits, ids):
    """Return the mean cross entropy of the next tokens."""
    return torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


def gt_loss(logits, ids):
    """Return the mean cross entropy of the next tokens."""
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


@NAMES
def test_the_states_have_the_same_names_and_shapes(name, tmp_path):
    theirs, ours = both_models(name, True, tmp_path)
    shapes = {key: tuple(value.shape) for key, value in theirs.state_dict().items()}
    assert {key: value.shape for key, value in ours.state_dict().items()} == shapes
    ours.load_state_dict({key: value.numpy() for key, value in theirs.state_dict().items()})


@NAMES
def test_padding_on_the_left_changes_nothing(name, tmp_path):
    theirs, ours = both_models(name, False, tmp_path)
    ids, mask = padded_ids([9, 4])
    want = theirs(
        torch.tensor(ids), attention_mask=torch.tensor(mask), position_ids=positions_of(mask)
    ).logits.detach()
    got = ours(gt.tensor(ids), attention_mask=gt.tensor(mask)).detach().numpy()
    assert relative_error(got[mask == 1], want.numpy()[mask == 1]) < 1e-4
    alone = ours(gt.tensor(ids[1:, -4:])).detach().numpy()
    assert relative_error(got[1:, -4:], alone) < 1e-4


@NAMES
def test_training_follows_the_same_curve(name, tmp_path):
    theirs, ours = both_models(name, True, tmp_path, layers=1)
    batches = list(some_ids(200 * 4, 12).reshape(200, 4, 12) // 8)
    for batch in batches:
        batch[:, 1::2] = batch[:, ::2]  # A pattern to learn.
    want = np.array(torch_losses(theirs.train(), batches))
    got = np.array(gt_losses(ours.train(), batches))
    np.testing.assert_allclose(got[:20], want[:20], rtol=1e-3)
    np.testing.assert_allclose(smooth(got), smooth(want), rtol=0.02)
    assert smooth(got)[-1] < 0.75 * got[0]


def torch_losses(model, batches):
    """Train; return the losses."""
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr=2e-3), []
    for ids in map(torch.tensor, batches):
        loss = torch_loss(model(ids).logits, ids)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def gt_losses(model, batches):
    """Train; return the losses."""
    optimizer, losses = gt.optim.AdamW(model.parameters(), lr=2e-3), []
    for ids in map(gt.tensor, batches):
        loss = gt_loss(model(ids), ids)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return gt.stack(losses).tolist()


def smooth(losses, count=20):
    """Return moving averages over `count` steps."""
    return np.convolve(losses, np.ones(count) / count, "valid")


@NAMES
@TIED
def test_greedy_gives_the_same_tokens(name, tied, tmp_path):
    theirs, ours = both_models(name, tied, tmp_path)
    ids, mask = padded_ids([7, 3, 5])
    want = their_tokens(theirs, ids, mask)
    got = generate(ours, gt.tensor(ids), 24, attention_mask=gt.tensor(mask))
    assert got.tolist() == want.tolist()
    plain = generate(ours, gt.tensor(ids[:1]), 24)
    assert plain.tolist() == want[:1].tolist()
    # One token, which ends the first sequence early, and several that end the sequences at
    # different steps.
    for end in (want[0, 12].item(), [want[1, 9].item(), want[2, 20].item(), want[0, 8].item()]):
        ended = their_tokens(theirs, ids, mask, end)
        got = generate(ours, gt.tensor(ids), 24, gt.tensor(mask), eos_token_id=end)
        assert got.tolist() == ended.tolist()


def their_tokens(model, ids, mask, end=None):
    """Return the tokens of Hugging Face's greedy generation."""
    options = transformers.GenerationConfig(
        max_new_tokens=24, do_sample=False, pad_token_id=0, eos_token_id=end
    )
    return model.generate(
        torch.tensor(ids), attention_mask=torch.tensor(mask), generation_config=options
    )


OPTIONS = [
    {"temperature": 1.7},
    {"temperature": 0.6, "top_k": 5},
    {"temperature": 1.0, "top_p": 0.7},
    {"temperature": 1.3, "top_k": 20, "top_p": 0.9},
]


def their_probabilities(logits, temperature, top_k=None, top_p=None):
    """Return the probabilities from which Hugging Face's library samples."""
    from transformers.generation import logits_process as processors

    steps = [processors.TemperatureLogitsWarper(temperature)]
    steps += [processors.TopKLogitsWarper(top_k)] if top_k else []
    steps += [processors.TopPLogitsWarper(top_p)] if top_p else []
    for step in steps:
        logits = step(None, logits)
    return logits.softmax(-1)


@pytest.mark.parametrize("options", OPTIONS)
def test_probabilities_are_the_same(options):
    logits = np.random.default_rng(1).normal(0, 3, (16, VOCABULARY)).astype(np.float32)
    want = their_probabilities(torch.tensor(logits), **options).numpy()
    got = filter_logits(gt.tensor(logits), **options).softmax(-1).numpy()
    assert ((got == 0) == (want == 0)).all()
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5)


@NAMES
@pytest.mark.parametrize("options", OPTIONS[1:], ids=str)
def test_the_same_uniforms_draw_the_same_tokens(name, options, tmp_path):
    theirs, ours = both_models(name, True, tmp_path)
    ids, mask = padded_ids([6, 4])
    uniforms = np.random.default_rng(2).random((2, 12))
    got = generate(
        ours, gt.tensor(ids), 12, gt.tensor(mask), uniforms=gt.tensor(uniforms), **options
    )
    assert got.tolist() == drawn_tokens(theirs, ids, mask, uniforms, options).tolist()


def drawn_tokens(model, ids, mask, uniforms, options):
    """Return sampled tokens, computed without a cache."""
    for numbers in uniforms.T:
        logits = model(
            torch.tensor(ids), attention_mask=torch.tensor(mask), position_ids=positions_of(mask)
        ).logits[:, -1]
        sums = their_probabilities(logits.detach(), **options).double().cumsum(-1)
        new = torch.searchsorted(sums, torch.tensor(numbers)[:, None], right=True).numpy()
        ids = np.concatenate([ids, new], 1)
        mask = np.concatenate([mask, np.ones_like(new)], 1)
    return ids


def test_a_uniform_number_finds_its_token():
    probabilities = gt.tensor([[0.0, 0.5, 0.0, 0.5]]).expand(4, 4)
    uniforms = gt.tensor([0.0, 0.49, 0.5, 1 - 2**-24])
    assert choose(probabilities, uniforms).tolist() == [1, 1, 3, 3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens=0"),
        ({"attention_mask": (1, 3)}, r"attention_mask has shape \(1, 3\)"),
        ({"temperature": -1.0}, "temperature=-1.0"),
        ({"temperature": 1.0, "top_k": 0}, "top_k=0"),
        ({"temperature": 1.0, "top_p": 1.5}, "top_p=1.5"),
        ({"top_k": 3}, "omit top_k"),
        ({"temperature": 1.0, "uniforms": (2, 3)}, r"uniforms have shape \(2, 3\)"),
    ],
)
def test_mistakes_are_told(options, message):
    ids = gt.ones(2, 4, dtype=gt.int64)
    made = {key: gt.ones(value) for key, value in options.items() if isinstance(value, tuple)}
    with pytest.raises(ValueError, match=message):
        generate(None, ids, **{"max_new_tokens": 4, **options, **made})


@pytest.mark.parametrize("name", ["qwen3", "llama3"])
def test_what_the_models_lack_is_refused(name):
    config = FAMILIES[name][0](True, 1).to_dict()
    rope = {"rope_parameters": {**config["rope_parameters"], "rope_type": "yarn"}}
    for change in ({"hidden_act": "gelu"}, rope):
        with pytest.raises(ValueError, match=f"{name}: .*(hidden_act|'yarn')"):
            FAMILIES[name][2](FAMILIES[name][3].from_dict({**config, **change}))


@NAMES
def test_bfloat16_comes_close(name, tmp_path):
    theirs, ours = both_models(name, True, tmp_path)
    ids = some_ids(2, 40)
    want = theirs(torch.tensor(ids)).logits.detach().numpy()
    got = ours.to(gt.bfloat16)(gt.tensor(ids))
    assert got.dtype == gt.bfloat16
    assert relative_error(got.detach().float().numpy(), want) < 0.05
    assert generate(ours, gt.tensor(ids), 3).shape == (2, 43)
