"""Small language models with random weights."""

import warnings

#: Options of configurations, common to several families of models.
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
    """Return a model of `transformers` with reproducible random weights."""
    import torch
    import transformers

    kind = getattr(transformers, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        return kind(kind.config_class(**SMALL, **more))
