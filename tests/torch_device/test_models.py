"""Models of `transformers` and torchvision, unmodified, on the device "cluster"."""

import copy
import warnings

import pytest
from language_models import SMALL

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
device = pytest.importorskip("gt.torch")

transformers = pytest.importorskip("transformers")

IDS = torch.randint(0, 100, (2, 12), generator=torch.Generator().manual_seed(0))
IMAGES = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
SOUND = torch.randn(2, 8, 32, generator=torch.Generator().manual_seed(0))
ENCODER = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
TEXT = {"input_ids": IDS, "labels": IDS}

#: The configuration's options, what the model is trained on, and what it generates from.
MODELS = {
    "Qwen3ForCausalLM": ({**SMALL, "head_dim": 8}, TEXT, {"input_ids": IDS[:, :5]}),
    "LlamaForCausalLM": (SMALL, TEXT, {"input_ids": IDS[:, :5]}),
    "MixtralForCausalLM": (
        {**SMALL, "num_local_experts": 4, "num_experts_per_tok": 2},
        TEXT,
        {"input_ids": IDS[:, :5]},
    ),
    "GPT2LMHeadModel": (
        {
            "vocab_size": 100,
            "n_positions": 64,
            "n_embd": 32,
            "n_layer": 2,
            "n_head": 4,
            "attn_pdrop": 0.0,
            "resid_pdrop": 0.0,
            "embd_pdrop": 0.0,
            "bos_token_id": 1,
            "eos_token_id": 2,
        },
        TEXT,
        {"input_ids": IDS[:, :5]},
    ),
    "BertForMaskedLM": ({**ENCODER, "vocab_size": 100}, TEXT, None),
    "T5ForConditionalGeneration": (
        {
            "vocab_size": 100,
            "d_model": 32,
            "d_kv": 8,
            "d_ff": 64,
            "num_layers": 2,
            "num_heads": 4,
            "dropout_rate": 0.0,
            "decoder_start_token_id": 0,
            "pad_token_id": 0,
        },
        TEXT,
        {"input_ids": IDS},
    ),
    "ViTForImageClassification": (
        {**ENCODER, "image_size": 32, "patch_size": 8, "num_labels": 5},
        {"pixel_values": IMAGES, "labels": torch.tensor([1, 2])},
        None,
    ),
    "WhisperForConditionalGeneration": (
        {
            "vocab_size": 100,
            "d_model": 32,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 64,
            "decoder_ffn_dim": 64,
            "num_mel_bins": 8,
            "max_source_positions": 16,
            "max_target_positions": 32,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "decoder_start_token_id": 1,
            "dropout": 0.0,
            "suppress_tokens": [],
            "begin_suppress_tokens": [],
        },
        {"input_features": SOUND, "labels": IDS},
        {"input_features": SOUND},
    ),
}

pytestmark = pytest.mark.filterwarnings("ignore")


def move(tensors, device):
    """Give tensors by name on a device."""
    return {name: tensor.to(device) for name, tensor in tensors.items()}


def train(model, inputs, device, steps=5):
    """Train a copy of a model; give its losses and the copy."""
    model = copy.deepcopy(model).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(**move(inputs, device)).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses, model.eval()


def make(name):
    """Make a small model with random weights."""
    options, inputs, prompt = MODELS[name]
    model = getattr(transformers, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        return model(model.config_class(**options)), inputs, prompt


@pytest.mark.parametrize("name", MODELS)
def test_transformers(name):
    """Loss curves are those on the CPU, and so is what is generated."""
    model, inputs, prompt = make(name)
    expected, on_host = train(model, inputs, "cpu")
    found, on_cluster = train(model, inputs, "cluster")
    assert found == pytest.approx(expected, abs=1e-4)
    assert expected[-1] < expected[0]
    if prompt:
        options = {"max_new_tokens": 8, "do_sample": False}
        words = on_cluster.generate(**move(prompt, "cluster"), **options)
        assert words.device.type == "cluster"
        assert words.cpu().equal(on_host.generate(**prompt, **options))


def test_resnet():
    """A network of torchvision: convolutions, batch normalization, pooling."""
    torchvision = pytest.importorskip("torchvision")

    def losses(device):
        torch.manual_seed(0)
        model = torchvision.models.resnet18(num_classes=5).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        images = torch.randn(4, 3, 96, 96, generator=torch.Generator().manual_seed(0)).to(device)
        labels = torch.tensor([1, 2, 0, 3]).to(device)
        found = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found, model.eval()(images).sum().item()

    found, expected = losses("cluster"), losses("cpu")
    assert found[0] == pytest.approx(expected[0], abs=1e-4)
    # Scaled by what few images gave: the order of sums shows.
    assert found[1] == pytest.approx(expected[1], abs=1e-2)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent(kind):
    """Recurrent networks of `torch.nn`."""

    def losses(device):
        torch.manual_seed(0)
        model = getattr(torch.nn, kind)(6, 8, num_layers=2, batch_first=True).to(device)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        generator = torch.Generator().manual_seed(0)
        sequences = torch.randn(3, 7, 6, generator=generator).to(device)
        found = []
        for _ in range(4):
            optimizer.zero_grad()
            loss = model(sequences)[0].pow(2).mean()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    assert losses("cluster") == pytest.approx(losses("cpu"), abs=1e-5)


OPTIMIZERS = [
    "ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "LBFGS", "NAdam",
    "RAdam", "RMSprop", "Rprop", "SGD",
]  # fmt: skip


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("foreach", [None, False, True])
def test_optimizers(name, foreach):
    """Optimizers of `torch.optim` step as on the CPU, tensor by tensor or all at once."""
    if name == "LBFGS" and foreach is not None:
        pytest.skip("has no such choice")

    def trained(device):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
        model = model.to(device)
        options = {} if foreach is None else {"foreach": foreach}
        optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.01, **options)
        inputs = torch.randn(5, 4, generator=torch.Generator().manual_seed(0)).to(device)

        def closure():
            optimizer.zero_grad()
            loss = model(inputs).pow(2).sum()
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)
        return [parameter.detach().cpu() for parameter in model.parameters()]

    for found, expected in zip(trained("cluster"), trained("cpu"), strict=True):
        assert torch.allclose(found, expected, atol=1e-5), (found - expected).abs().max()
