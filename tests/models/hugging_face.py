"""Tiny Hugging Face language models, and the examples' models with the same weights."""

import sys
from pathlib import Path

import gt
import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "models"
sys.path.insert(0, str(EXAMPLES))

import gpt2  # noqa: E402
import llama3  # noqa: E402
import qwen3  # noqa: E402

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

VOCABULARY = 61
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "initializer_range": 0.2,
}
#: Rotary frequencies of all three kinds: kept, interpolated, and lowered.
STRETCHED = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
GPT2_SIZES = {
    "vocab_size": VOCABULARY,
    "n_positions": 64,
    "n_embd": 32,
    "n_head": 4,
    "initializer_range": 0.2,
    "embd_pdrop": 0.0,
    "attn_pdrop": 0.0,
    "resid_pdrop": 0.0,
}


def _qwen3_config(tied: bool, layers: int):
    return transformers.Qwen3Config(
        **SIZES, num_hidden_layers=layers, head_dim=16, tie_word_embeddings=tied
    )


def _llama3_config(tied: bool, layers: int):
    return transformers.LlamaConfig(
        **SIZES,
        num_hidden_layers=layers,
        tie_word_embeddings=tied,
        rope_parameters=STRETCHED,
        attention_bias=not tied,
    )


def _gpt2_config(tied: bool, layers: int):
    tokens = {"bos_token_id": None, "eos_token_id": None}
    return transformers.GPT2Config(**GPT2_SIZES, **tokens, n_layer=layers, tie_word_embeddings=tied)


FAMILIES = {
    "qwen3": (_qwen3_config, "Qwen3ForCausalLM", qwen3.Qwen3, qwen3.Config),
    "llama3": (_llama3_config, "LlamaForCausalLM", llama3.Llama, llama3.Config),
    "gpt2": (_gpt2_config, "GPT2LMHeadModel", gpt2.GPT2, gpt2.Config),
}


def both_models(name: str, tied: bool, folder, layers: int = 2):
    """Return a random Hugging Face model, and the example's model with weights from its file."""
    make_config, their_class, our_class, our_config = FAMILIES[name]
    torch.manual_seed(0)
    theirs = getattr(transformers, their_class)(make_config(tied, layers)).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter += 0.05 * torch.randn_like(parameter)
    theirs.save_pretrained(folder)
    ours = our_class(our_config.from_dict(theirs.config.to_dict()))
    ours.load_state_dict(gt.safetensors.load_file(folder / "model.safetensors"))
    return theirs, ours.eval()


def some_ids(batch: int, length: int, seed: int = 0) -> np.ndarray:
    """Return random tokens (batch, length), none of which is 0, the padding."""
    return np.random.default_rng(seed).integers(1, VOCABULARY, (batch, length))


def padded_ids(lengths: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return sequences of these lengths, padded on the left, and their attention mask."""
    ids = some_ids(len(lengths), max(lengths))
    mask = (np.arange(max(lengths)) >= max(lengths) - np.array(lengths)[:, None]).astype(np.int64)
    return ids * mask, mask


def positions_of(mask: np.ndarray):
    """Return the positions that Hugging Face's `generate` uses with a mask."""
    return torch.tensor(np.maximum(mask.cumsum(1) - 1, 0))


def relative_error(got: np.ndarray, want: np.ndarray) -> float:
    """Return the largest difference divided by the largest element."""
    return float(np.abs(got - want).max() / np.abs(want).max())
