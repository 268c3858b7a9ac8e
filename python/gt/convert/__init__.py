"""Checkpoints of Hugging Face's folders as GT's, and back.

    python -m gt.convert Qwen3-0.6B qwen3.gt                    # to a checkpoint of GT
    python -m gt.convert qwen3.gt Qwen3-again                   # and back
    python -m gt.convert Qwen3-0.6B qwen3.gt --model examples/models/qwen3.py:Qwen3

The source says which way it goes. A table tells the name, shape and dtype of each tensor and, if a
model is given, whether the model has it. `config.json`, the tokenizer's files and others come
along, so that a folder that went both ways loads again:

    >>> import json, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> os.mkdir(f"{folder}/hf")
    >>> gt.safetensors.save_file({"weight": gt.ones(2, 3)}, f"{folder}/hf/model.safetensors")
    >>> from gt.convert import convert
    >>> print(convert(f"{folder}/hf", f"{folder}/gt").totals())
    1 tensor, 6 numbers, 24 bytes
    >>> gt.checkpoint.load(f"{folder}/gt").state["weight"].shape
    (2, 3)

Values are read and written shard by shard, so that memory is needed for a shard of
`max_shard_size` and not for the whole model; a model that is compared with is made whole.
"""

from gt.convert.errors import ConvertError
from gt.convert.matching import Report, Row
from gt.convert.run import convert

__all__ = ["ConvertError", "Report", "Row", "convert"]
