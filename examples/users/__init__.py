"""Ten kinds of work on one frozen language model.

Each is a generator that yields one number for each step. It changes nothing in the model: it trains
tensors of its own, or changes activations by hooks. With the same seed it yields the same bits.
"""

from users.base import Kind
from users.reading import attribution, evaluation, generation, patching, steering
from users.training import distillation, lora, preference, probing, soft_prompt

KINDS: dict[str, Kind] = {
    "lora": lora,
    "steering": steering,
    "probing": probing,
    "distillation": distillation,
    "generation": generation,
    "attribution": attribution,
    "soft prompt": soft_prompt,
    "evaluation": evaluation,
    "preference": preference,
    "patching": patching,
}
