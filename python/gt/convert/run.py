"""One conversion, from the source folder to the target folder."""

from __future__ import annotations

import fnmatch
import json
import os
import shutil
from dataclasses import replace
from typing import Any

from gt.checkpoint.manifest import MANIFEST
from gt.convert.entries import Entry, Source
from gt.convert.errors import ConvertError, counted, parse_size
from gt.convert.folder import open_folder
from gt.convert.matching import Report, compare
from gt.convert.models import what_a_model_has
from gt.convert.stored import is_checkpoint, open_checkpoint
from gt.convert.writing import write_checkpoint, write_folder

#: The dtypes that floats can be written in.
DTYPES = ("keep", "bfloat16", "float16", "float32")

#: Files with weights, which are not copied, because the target's weights may differ.
_WEIGHTS = (
    "*.safetensors *.safetensors.index.json *.bin *.bin.index.json *.h5 *.msgpack *.gguf *.onnx "
    "*.pt *.pth *.ckpt"
).split()

#: Files of an earlier conversion, which a new one replaces.
_REPLACED = (
    "model.safetensors model-*-of-*.safetensors model.safetensors.index.json pytorch_model.bin "
    "pytorch_model-*-of-*.bin pytorch_model.bin.index.json values-*.safetensors manifest.json "
    "values-????????????????"
).split()


def convert(
    source: Any,
    target: Any,
    *,
    model: Any = None,
    dtype: str = "keep",
    max_shard_size: int | str = "5GB",
    force: bool = False,
    allow_mismatch: bool = False,
    member: str = "model",
) -> Report:
    """Convert a Hugging Face folder to a GT checkpoint, or a checkpoint to such a folder.

    Args:
        source: a folder with config.json and weights, or a checkpoint; its kind determines the
            direction.
        target: the folder to create; it may exist if it is empty.
        model: the model to compare names and shapes with: a `Module`, a function or class that
            creates one from the dict in config.json, or its location, as `"file.py:Name"` or
            `"package.module:Name"`.
        dtype: the dtype of floating-point tensors in the target: "keep", "bfloat16", "float16" or
            "float32".
        max_shard_size: the maximum size of a file in the target, in bytes or as in "5GB".
        force: whether to replace weights in a target that is not empty.
        allow_mismatch: whether to convert even if source and model do not match.
        member: the name of the state to convert, if a checkpoint has several.

    Returns:
        A report of the tensors and whether they match. If they do not, nothing is written, and
        its `target` is None.

    Raises:
        ConvertError: the source is missing or broken, or the target exists.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> gt.checkpoint.save(f"{folder}/gt", gt.nn.Linear(3, 2).state_dict()).wait()
    >>> from gt.convert import convert
    >>> print(convert(f"{folder}/gt", f"{folder}/hf", model=gt.nn.Linear(3, 2)))
    name    shape  dtype     state
    weight  2 x 3  float32   matched
    bias    2      float32   matched
    <BLANKLINE>
    2 tensors, 8 numbers, 32 bytes: 2 matched
    """
    if dtype not in DTYPES:
        raise ConvertError(f"dtype is {dtype!r}, expected one of {', '.join(DTYPES)}")
    limit = parse_size(max_shard_size)
    opened = _open(os.path.abspath(os.fspath(source)), member)
    target = os.path.abspath(os.fspath(target))
    _check_target(target, opened, force)
    wanted = None
    if model is not None:
        wanted = what_a_model_has(model, _config(opened.folder))
    rows, entries = compare([entry.to(dtype) for entry in opened.entries], wanted)
    carried, left = _other_files(opened)
    report = Report(rows, entries, carried, left)
    if report.fits or allow_mismatch:
        _write(opened, report, target, dtype, limit)
        report.target = target
    return report


def _open(folder: str, member: str) -> Source:
    if not os.path.isdir(folder):
        what = "it is a file" if os.path.exists(folder) else "there is no such folder"
        raise ConvertError(
            f"{folder}: {what}\n  hint: name a folder with config.json and model.safetensors, or "
            "a GT checkpoint; `hf download NAME --local-dir FOLDER` gets a folder from the hub"
        )
    if is_checkpoint(folder):
        return open_checkpoint(folder, member)
    steps = sorted(name for name in os.listdir(folder) if is_checkpoint(f"{folder}/{name}"))
    if steps:
        raise ConvertError(
            f"{folder}: it is not a checkpoint, but contains {counted(len(steps), 'checkpoint')}\n"
            f"  hint: name one of them, such as {os.path.join(folder, steps[-1])}"
        )
    return open_folder(folder)


def _check_target(target: str, source: Source, force: bool) -> None:
    if os.path.realpath(target) == os.path.realpath(source.folder):
        raise ConvertError(f"{target}: it is the source\n  hint: name another folder")
    if os.path.exists(target) and not os.path.isdir(target):
        raise ConvertError(f"{target}: it is a file, expected a folder or a new path")
    if not force and os.path.isdir(target) and os.listdir(target):
        raise ConvertError(
            f"{target}: it exists and is not empty\n  hint: --force replaces the weights in it; "
            "or name another folder"
        )


def _config(folder: str) -> dict[str, Any] | None:
    """Return the contents of config.json, or None if it does not exist."""
    path = os.path.join(folder, "config.json")
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ConvertError(f"{path}: it cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise ConvertError(f"{path}: it holds a {type(found).__name__}, expected an object")
    return found


def _is_one_of(name: str, kinds: list[str]) -> bool:
    return any(fnmatch.fnmatch(name, kind) for kind in kinds)


def _other_files(source: Source) -> tuple[list[str], list[str]]:
    """Return the names of the files to copy, and of those left out: other weights and folders."""
    carried: list[str] = []
    left: list[str] = []
    for name in sorted(os.listdir(source.folder)):
        if name.startswith(".") or name in source.weights:
            continue
        if os.path.isdir(os.path.join(source.folder, name)):
            left.append(f"{name}/")
        else:
            (left if _is_one_of(name, [*_WEIGHTS, MANIFEST]) else carried).append(name)
    return carried, left


def _write(source: Source, report: Report, target: str, dtype: str, limit: int) -> None:
    """Write everything to a temporary folder beside the target, then move it into the target."""
    part = f"{target}.{os.getpid()}.part"
    try:
        os.makedirs(part)
        for name in report.carried:
            shutil.copyfile(os.path.join(source.folder, name), os.path.join(part, name))
        config = _config(source.folder)
        if dtype != "keep" and config is not None:
            _write_dtype(part, config, dtype)
        if source.is_checkpoint:
            write_folder(part, _untied(source, report.entries, config), limit)
        else:
            there = {entry.name for entry in source.entries}
            added = [entry.name for entry in report.entries if entry.name not in there]
            write_checkpoint(part, report.entries, limit, {"added": added})
        _put(part, target)
    except OSError as error:
        raise ConvertError(f"{target}: it was not written: {error}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _untied(source: Source, entries: list[Entry], config: dict[str, Any] | None) -> list[Entry]:
    """Leave out the second name of a tied tensor if a reader of the folder ties it itself.

    That is so if config.json says so, or if the folder that the checkpoint was converted from did
    not have the name. Otherwise the values are written under both names.
    """
    ties = bool(config and config.get("tie_word_embeddings"))
    return [
        replace(entry, tied=None)
        for entry in entries
        if entry.tied is None or not (ties or entry.name in source.added)
    ]


def _write_dtype(folder: str, config: dict[str, Any], dtype: str) -> None:
    """Write config.json with the dtype of the converted weights."""
    for key in ("dtype", "torch_dtype"):
        if key in config:
            config[key] = dtype
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file, indent=2)
        file.write("\n")


def _put(part: str, target: str) -> None:
    """Remove the weights that are in the target, and move all files into it."""
    os.makedirs(target, exist_ok=True)
    for name in os.listdir(target):
        path = os.path.join(target, name)
        if _is_one_of(name, _REPLACED):
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    # The index or manifest comes last: without it, the target is not complete.
    names = sorted(os.listdir(part), key=lambda name: (name.endswith(".json"), name == MANIFEST))
    for name in names:
        os.replace(os.path.join(part, name), os.path.join(target, name))
