"""Conversion of Hugging Face model folders to GT checkpoints, and back.

    python -m gt.convert Qwen3-0.6B qwen3.gt                    # to a GT checkpoint
    python -m gt.convert qwen3.gt Qwen3-again                   # and back
    python -m gt.convert Qwen3-0.6B qwen3.gt --model examples/models/qwen3.py:Qwen3

The kind of the source determines the direction. A table lists the name, shape and dtype of each
tensor and, if a model is given, whether the model has it. `config.json`, the tokenizer's files and
other files are copied too, so that a folder converted to a checkpoint and back can be loaded:

    >>> import json, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> os.mkdir(f"{folder}/hf")
    >>> gt.safetensors.save_file({"weight": gt.ones(2, 3)}, f"{folder}/hf/model.safetensors")
    >>> from gt.convert import convert
    >>> print(convert(f"{folder}/hf", f"{folder}/gt").totals())
    1 tensor, 6 numbers, 24 bytes
    >>> gt.checkpoint.load(f"{folder}/gt").state["weight"].shape
    (2, 3)

Values are read and written shard by shard, so only one shard of `max_shard_size` is in memory at a
time, unless a model is given: it is constructed completely for the comparison.
"""

from gt._public import show_callers
from gt.convert.errors import ConvertError
from gt.convert.matching import Report, Row
from gt.convert.run import convert

__all__ = ["ConvertError", "Report", "Row", "convert"]

show_callers(globals())
