"""Unmodified PyTorch programs that train small models and print their results.

usage: models_of_torch.py [--server ADDRESS] [--pause] NAME...

prints a line of numbers for each named model. With `--pause`, each program prints "half" in the
middle of its training, and waits for a line of input.
"""

import argparse
import copy
import json
import sys
import warnings

import torch
import transformers
from language_models import SMALL

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

#: Model -> (options of the configuration, inputs for training, prompt for generation or None).
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


def move(tensors, device):
    """Return a dict of tensors on a device."""
    return {name: tensor.to(device) for name, tensor in tensors.items()}


def train(model, inputs, device, steps=5, pause=lambda: None):
    """Train a copy of a model; return its losses and the copy.

    Each step calls `pause` between the backward pass and the optimizer.
    """
    model = copy.deepcopy(model).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(**move(inputs, device)).loss
        loss.backward()
        pause()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses, model.eval()


def make(name):
    """Return a small model with random weights, its inputs and its prompt."""
    options, inputs, prompt = MODELS[name]
    model = getattr(transformers, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        return model(model.config_class(**options)), inputs, prompt


def generated(model, prompt, device):
    """Return the tokens that a model generates from a prompt."""
    options = {"max_new_tokens": 8, "do_sample": False}
    return model.generate(**move(prompt, device), **options)


def resnet(device, pause):
    """Train a ResNet of torchvision; return its losses, and a sum of its outputs afterwards."""
    import torchvision

    torch.manual_seed(0)
    model = torchvision.models.resnet18(num_classes=5).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images = torch.randn(4, 3, 96, 96, generator=torch.Generator().manual_seed(0)).to(device)
    labels = torch.tensor([1, 2, 0, 3]).to(device)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        pause()
        optimizer.step()
        losses.append(loss.item())
    return [*losses, model.eval()(images).sum().item()]


def lstm(device, pause):
    """Train an LSTM of `torch.nn`; return its losses."""
    return recurrent("LSTM", device, pause)


def recurrent(kind, device, pause):
    """Train a recurrent network of a kind; return its losses."""
    torch.manual_seed(0)
    model = getattr(torch.nn, kind)(6, 8, num_layers=2, batch_first=True).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    sequences = torch.randn(3, 7, 6, generator=torch.Generator().manual_seed(0)).to(device)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = model(sequences)[0].pow(2).mean()
        loss.backward()
        pause()
        optimizer.step()
        losses.append(loss.item())
    return losses


def numbers(name, device, pause):
    """Return the results of a program."""
    if name in (resnet.__name__, lstm.__name__):
        return globals()[name](device, pause)
    model, inputs, prompt = make(name)
    losses, trained = train(model, inputs, device, pause=pause)
    words = generated(trained, prompt, device).flatten().tolist() if prompt else []
    return [*losses, *words]


#: All programs.
NAMES = (*MODELS, resnet.__name__, lstm.__name__)


def main():
    """Run programs on the cluster."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", choices=NAMES, metavar="NAME")
    parser.add_argument("--server")
    parser.add_argument("--pause", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")

    import gt
    import gt.torch

    if args.server:
        gt.connect(args.server)
    for name in args.names:
        steps = iter(range(100))

        def pause(steps=steps):
            if args.pause and next(steps) == 1:
                print("half", flush=True)
                sys.stdin.readline()

        print(json.dumps(numbers(name, "cluster", pause)), flush=True)


if __name__ == "__main__":
    main()
