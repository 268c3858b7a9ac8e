"""Qwen3 (Yang et al., 2025): grouped-query attention, query and key norms, rotary positions.

Parameters have the names and shapes of Hugging Face's files:

    model = Qwen3(Config.from_dict(json.load(open("config.json"))))
    model.load_state_dict(gt.safetensors.load_file("model.safetensors"))

    python examples/models/qwen3.py     # trains a tiny one on a poem, and lets it recite
    GT_CONFIG=examples/models/tensor_parallel.yaml python examples/models/qwen3.py --workers 4

Signals name how weights can be sharded; without a configuration they are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import gt
from generation import Cache, attend, positions_and_mask
from gt import Tensor, nn
from gt.nn import functional as F


@dataclass
class Config:
    """The hyperparameters of a model, with the names of a config.json."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int = 128
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0
    tie_word_embeddings: bool = False
    attention_bias: bool = False
    initializer_range: float = 0.02

    @classmethod
    def from_dict(cls, config: Mapping[str, Any]) -> Config:
        """Return the configuration in a config.json; raise ValueError for unsupported options."""
        rope: dict[str, Any] = config.get("rope_parameters") or config.get("rope_scaling") or {}
        if rope.get("rope_type", "default") != "default":
            raise ValueError(f"qwen3: rope_type is {rope['rope_type']!r}, expected 'default'")
        if config.get("use_sliding_window") or config.get("hidden_act", "silu") != "silu":
            raise ValueError("qwen3: expected use_sliding_window=False and hidden_act='silu'")
        names = {field.name for field in fields(cls)}
        given = {name: value for name, value in {**config, **rope}.items() if name in names}
        return cls(**given)


def rotary_frequencies(config: Config) -> list[float]:
    """Return the angle per position of each rotated pair of a head's elements."""
    return [config.rope_theta ** (-i / config.head_dim) for i in range(0, config.head_dim, 2)]


def linear(config: Config, inputs: int, outputs: int, bias: bool = False) -> nn.Linear:
    """Return a layer with normally distributed weights."""
    layer = nn.Linear(inputs, outputs, bias)
    nn.init.normal_(layer.weight, std=config.initializer_range)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the pairs of elements (i, i + width / 2) by their angles (Su et al., 2021)."""
    first, second = x.chunk(2, -1)
    return gt.cat([first * cos - second * sin, second * cos + first * sin], -1)


class Attention(nn.Module):
    """Causal grouped-query attention: several query heads share keys and values."""

    def __init__(self, config: Config, layer: int):
        super().__init__()
        self.layer, self.head_dim = layer, config.head_dim
        hidden, bias = config.hidden_size, config.attention_bias
        queries = config.num_attention_heads * config.head_dim
        keys = config.num_key_value_heads * config.head_dim
        with gt.signal.context("cut_outputs"):
            self.q_proj = linear(config, hidden, queries, bias)
            self.k_proj = linear(config, hidden, keys, bias)
            self.v_proj = linear(config, hidden, keys, bias)
        with gt.signal.context("cut_inputs"):
            self.o_proj = linear(config, queries, hidden, bias)
        with gt.signal.context("copied"):
            self.q_norm = nn.RMSNorm(config.head_dim, config.rms_norm_eps)
            self.k_norm = nn.RMSNorm(config.head_dim, config.rms_norm_eps)

    def heads(self, x: Tensor) -> Tensor:
        """Reshape (batch, length, heads x width) to (batch, length, heads, width)."""
        return x.view(*x.shape[:2], -1, self.head_dim)

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor | None, cache: Cache | None
    ) -> Tensor:
        """Attend between the positions of x (batch, length, hidden)."""
        query = self.q_norm(self.heads(self.q_proj(x))).transpose(1, 2)
        key = self.k_norm(self.heads(self.k_proj(x))).transpose(1, 2)
        value = self.heads(self.v_proj(x)).transpose(1, 2)
        query, key = rotate(query, cos, sin), rotate(key, cos, sin)
        if cache is not None:
            key, value = cache.extend(self.layer, key, value)
        mixed = attend(query, key, value, mask)
        return self.o_proj(mixed.transpose(1, 2).flatten(2))


class MLP(nn.Module):
    """SwiGLU (Shazeer, 2020): down(silu(gate(x)) * up(x))."""

    def __init__(self, config: Config):
        super().__init__()
        hidden, inner = config.hidden_size, config.intermediate_size
        with gt.signal.context("cut_outputs"):
            self.gate_proj = linear(config, hidden, inner)
            self.up_proj = linear(config, hidden, inner)
        with gt.signal.context("cut_inputs"):
            self.down_proj = linear(config, inner, hidden)

    def forward(self, x: Tensor) -> Tensor:
        """Map each position independently."""
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class DecoderLayer(nn.Module):
    """Attention and MLP, each on normalized input and with a residual connection."""

    def __init__(self, config: Config, layer: int):
        super().__init__()
        self.self_attn = Attention(config, layer)
        self.mlp = MLP(config)
        with gt.signal.context("copied"):
            self.input_layernorm = nn.RMSNorm(config.hidden_size, config.rms_norm_eps)
            self.post_attention_layernorm = nn.RMSNorm(config.hidden_size, config.rms_norm_eps)

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor | None, cache: Cache | None
    ) -> Tensor:
        """Map x (batch, length, hidden) to the same shape."""
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, mask, cache)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    """Embedding, layers and the final normalization."""

    def __init__(self, config: Config):
        super().__init__()
        with gt.signal.context("cut_outputs"):
            self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
            nn.init.normal_(self.embed_tokens.weight, std=config.initializer_range)
        self.layers = nn.ModuleList(
            [DecoderLayer(config, layer) for layer in range(config.num_hidden_layers)]
        )
        with gt.signal.context("copied"):
            self.norm = nn.RMSNorm(config.hidden_size, config.rms_norm_eps)
            # Not a buffer, so that angles stay float32 when the model is cast to a smaller dtype.
            self.frequencies = gt.tensor(rotary_frequencies(config))

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, cache: Cache | None = None
    ) -> Tensor:
        """Return hidden states (batch, length, hidden)."""
        positions, mask = positions_and_mask(input_ids.shape[1], attention_mask, cache)
        angles = (positions[..., None] * self.frequencies)[:, None]
        x = self.embed_tokens(input_ids)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        for layer in self.layers:
            x = layer(x, cos, sin, mask, cache)
        if cache is not None:
            cache.used += input_ids.shape[1]
        return self.norm(x)


class Qwen3(nn.Module):
    """A language model: the next token's logits at each position.

    >>> tiny = Config(64, 32, 64, 2, 4, 2, 8)
    >>> Qwen3(tiny)(gt.tensor([[1, 2, 3]], dtype=gt.int64)).shape
    (1, 3, 64)
    """

    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.model = Decoder(config)
        with gt.signal.context("cut_outputs"):
            self.lm_head = linear(config, config.hidden_size, config.vocab_size)
        if config.tie_word_embeddings:
            self.lm_head.weight = self.model.embed_tokens.weight

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, cache: Cache | None = None
    ) -> Tensor:
        """Return logits (batch, length, vocabulary).

        Args:
            input_ids: (batch, length) tokens.
            attention_mask: (batch, length): 0 for padding, which is on the left.
            cache: from `make_cache`: the tokens continue the cached ones.
        """
        return self.lm_head(self.model(input_ids, attention_mask, cache))

    def make_cache(self, batch: int, length: int, attention_mask: Tensor | None = None) -> Cache:
        """Return an empty cache for sequences of this length, including the prompt."""
        config = self.config
        shape = (batch, config.num_key_value_heads, length, config.head_dim)
        dtype = self.lm_head.weight.dtype
        return Cache(config.num_hidden_layers, shape, attention_mask, dtype)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        """Load also files without the head, which models with tied embeddings may lack."""
        if self.config.tie_word_embeddings:
            embedding = state_dict.get(f"{prefix}model.embed_tokens.weight")
            if embedding is not None:
                state_dict.setdefault(f"{prefix}lm_head.weight", embedding)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)


if __name__ == "__main__":
    from text import demonstrate

    demonstrate(lambda: Qwen3(Config(128, 64, 128, 2, 4, 2, 16)))
