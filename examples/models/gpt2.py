"""GPT-2 (Radford et al., 2019): learned positions, one matrix for queries, keys and values.

Parameters have the names and shapes of Hugging Face's files, where weights are (in, out):

    model = GPT2(Config.from_dict(json.load(open("config.json"))))
    model.load_state_dict(gt.safetensors.load_file("model.safetensors"))

    python examples/models/gpt2.py      # trains a tiny one on a poem, and lets it recite
    GT_CONFIG=examples/models/data_parallel.yaml python examples/models/gpt2.py --workers 4

Signals name how weights can be sharded; without a configuration they are ignored.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import gt
from generation import Cache, positions_and_mask
from gt import Tensor, nn
from gt.nn import functional as F


@dataclass
class Config:
    """The hyperparameters of a model, with the names of a config.json."""

    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    n_inner: int | None = None
    embd_pdrop: float = 0.1
    attn_pdrop: float = 0.1
    resid_pdrop: float = 0.1
    layer_norm_epsilon: float = 1e-5
    initializer_range: float = 0.02
    tie_word_embeddings: bool = True

    @classmethod
    def from_dict(cls, config: Mapping[str, Any]) -> Config:
        """Return the configuration in a config.json; raise ValueError for unsupported options."""
        expected = {
            "activation_function": "gelu_new",
            "scale_attn_weights": True,
            "scale_attn_by_inverse_layer_idx": False,
        }
        for name, value in expected.items():
            if config.get(name, value) != value:
                raise ValueError(f"gpt2: {name} is {config[name]!r}, expected {value!r}")
        names = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in config.items() if name in names})


class Conv1D(nn.Module):
    """A linear layer whose weight is (in, out), as in the first GPT-2.

    >>> Conv1D(2, 3)(gt.ones(4, 2)).shape
    (4, 3)
    """

    def __init__(self, inputs: int, outputs: int, std: float = 0.02):
        super().__init__()
        self.weight = nn.Parameter(gt.randn(inputs, outputs) * std)
        self.bias = nn.Parameter(gt.zeros(outputs))

    def forward(self, x: Tensor) -> Tensor:
        """Map the last axis."""
        return x @ self.weight + self.bias


class Attention(nn.Module):
    """Causal attention with several heads."""

    def __init__(self, config: Config, layer: int):
        super().__init__()
        self.layer, self.config = layer, config
        width, std = config.n_embd, config.initializer_range
        with gt.signal.context("conv1d_cut_outputs"):
            self.c_attn = Conv1D(width, 3 * width, std)
        with gt.signal.context("conv1d_cut_inputs"):
            self.c_proj = Conv1D(width, width, std / math.sqrt(2 * config.n_layer))
        self.resid_dropout = nn.Dropout(config.resid_pdrop)

    def forward(self, x: Tensor, mask: Tensor | None, cache: Cache | None) -> Tensor:
        """Attend between the positions of x (batch, length, width)."""
        query, key, value = (
            part.view(*x.shape[:2], self.config.n_head, -1).transpose(1, 2)
            for part in self.c_attn(x).chunk(3, -1)
        )
        if cache is not None:
            key, value = cache.extend(self.layer, key, value)
        dropout = self.config.attn_pdrop if self.training else 0.0
        mixed = F.scaled_dot_product_attention(
            query, key, value, mask, dropout, is_causal=mask is None
        )
        return self.resid_dropout(self.c_proj(mixed.transpose(1, 2).flatten(2)))


class MLP(nn.Module):
    """Two layers with GELU between them."""

    def __init__(self, config: Config):
        super().__init__()
        width, std = config.n_embd, config.initializer_range
        inner = config.n_inner or 4 * width
        with gt.signal.context("conv1d_cut_outputs"):
            self.c_fc = Conv1D(width, inner, std)
        with gt.signal.context("conv1d_cut_inputs"):
            self.c_proj = Conv1D(inner, width, std / math.sqrt(2 * config.n_layer))
        self.dropout = nn.Dropout(config.resid_pdrop)

    def forward(self, x: Tensor) -> Tensor:
        """Map each position independently."""
        return self.dropout(self.c_proj(F.gelu(self.c_fc(x), approximate="tanh")))


class Block(nn.Module):
    """Attention and MLP, each on normalized input and with a residual connection."""

    def __init__(self, config: Config, layer: int):
        super().__init__()
        self.attn = Attention(config, layer)
        self.mlp = MLP(config)
        with gt.signal.context("copied"):
            self.ln_1 = nn.LayerNorm(config.n_embd, config.layer_norm_epsilon)
            self.ln_2 = nn.LayerNorm(config.n_embd, config.layer_norm_epsilon)

    def forward(self, x: Tensor, mask: Tensor | None, cache: Cache | None) -> Tensor:
        """Map x (batch, length, width) to the same shape."""
        x = x + self.attn(self.ln_1(x), mask, cache)
        return x + self.mlp(self.ln_2(x))


class Transformer(nn.Module):
    """Embeddings of tokens and positions, blocks, and the final normalization."""

    def __init__(self, config: Config):
        super().__init__()
        with gt.signal.context("cut_outputs"):
            self.wte = nn.Embedding(config.vocab_size, config.n_embd)
            nn.init.normal_(self.wte.weight, std=config.initializer_range)
        with gt.signal.context("copied"):
            self.wpe = nn.Embedding(config.n_positions, config.n_embd)
            nn.init.normal_(self.wpe.weight, std=config.initializer_range)
            self.ln_f = nn.LayerNorm(config.n_embd, config.layer_norm_epsilon)
        self.drop = nn.Dropout(config.embd_pdrop)
        self.h = nn.ModuleList([Block(config, layer) for layer in range(config.n_layer)])

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, cache: Cache | None = None
    ) -> Tensor:
        """Return hidden states (batch, length, width)."""
        positions, mask = positions_and_mask(input_ids.shape[1], attention_mask, cache)
        x = self.drop(self.wte(input_ids) + self.wpe(positions))
        for block in self.h:
            x = block(x, mask, cache)
        if cache is not None:
            cache.used += input_ids.shape[1]
        return self.ln_f(x)


class GPT2(nn.Module):
    """A language model: the next token's logits at each position.

    >>> tiny = Config(vocab_size=64, n_positions=16, n_embd=32, n_layer=2, n_head=4)
    >>> GPT2(tiny)(gt.tensor([[1, 2, 3]], dtype=gt.int64)).shape
    (1, 3, 64)
    """

    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.transformer = Transformer(config)
        with gt.signal.context("cut_outputs"):
            self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
            nn.init.normal_(self.lm_head.weight, std=config.initializer_range)
        if config.tie_word_embeddings:
            self.lm_head.weight = self.transformer.wte.weight

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, cache: Cache | None = None
    ) -> Tensor:
        """Return logits (batch, length, vocabulary).

        Args:
            input_ids: (batch, length) tokens.
            attention_mask: (batch, length): 0 for padding, which is on the left.
            cache: from `make_cache`: the tokens continue the cached ones.
        """
        return self.lm_head(self.transformer(input_ids, attention_mask, cache))

    def make_cache(self, batch: int, length: int, attention_mask: Tensor | None = None) -> Cache:
        """Return an empty cache for sequences of this length, including the prompt."""
        config = self.config
        if length > config.n_positions:
            raise ValueError(f"gpt2: {length} tokens, expected n_positions={config.n_positions}")
        shape = (batch, config.n_head, length, config.n_embd // config.n_head)
        return Cache(config.n_layer, shape, attention_mask, self.lm_head.weight.dtype)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        """Load also old files, without the head and the prefix `transformer`, and with masks."""
        for name in list(state_dict):
            if re.search(r"h\.\d+\.attn\.(masked_)?bias$", name):
                del state_dict[name]
            elif re.match(rf"{re.escape(prefix)}(wte|wpe|h|ln_f)\.", name):
                inner = f"{prefix}transformer.{name[len(prefix) :]}"
                state_dict[inner] = state_dict.pop(name)
        embedding = state_dict.get(f"{prefix}transformer.wte.weight")
        if self.config.tie_word_embeddings and embedding is not None:
            state_dict.setdefault(f"{prefix}lm_head.weight", embedding)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)


if __name__ == "__main__":
    from text import demonstrate

    SIZES = Config(128, 128, 64, 2, 4, embd_pdrop=0.0, attn_pdrop=0.0, resid_pdrop=0.0)
    demonstrate(lambda: GPT2(SIZES), steps=200)
