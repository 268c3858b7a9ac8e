"""Small models of language with random weights."""

import warnings

#: A configuration's options, as several families take them.
SMALL = {
    "vocab_size": 100,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def language_model(name, **more):
    """Make a model of `transformers`, always with the same weights."""
    import torch
    import transformers

    kind = getattr(transformers, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        return kind(kind.config_class(**SMALL, **more))
