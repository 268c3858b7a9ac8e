"""Tests of `gt.convert`: Hugging Face folders to GT checkpoints and back, reports and errors."""

import json
import os
import subprocess
import sys

import gt
import pytest
from gt import nn
from gt.convert import ConvertError, convert
from gt.convert.__main__ import main

#: A file with models for `--model`, whose configuration is a class or a dict.
MODEL = """
from dataclasses import dataclass
from gt import nn

@dataclass
class Config:
    width: int
    tied: bool

    @classmethod
    def from_dict(cls, config):
        return cls(config["width"], config["tie_word_embeddings"])

class Model(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.embed = nn.Embedding(6, config.width)
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, 6, bias=False)
        if config.tied:
            self.head.weight = self.embed.weight

def wider(config):
    return Model(Config(config["width"] + 1, False))

def number(config):
    return 3

def plain():
    return nn.Linear(3, 2)
"""


def values(folder):
    """Return the bytes, dtype and shape of each tensor in a folder's safetensors files."""
    found = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".safetensors"):
            data = (folder / name).read_bytes()
            length = int.from_bytes(data[:8], "little")
            for tensor, entry in json.loads(data[8 : 8 + length]).items():
                if tensor != "__metadata__":
                    start, end = entry["data_offsets"]
                    part = data[8 + length + start : 8 + length + end]
                    found[tensor] = (part, entry["dtype"], entry["shape"])
    return found


def written(folder, tensors, **config):
    """Write a Hugging Face folder with one file of weights."""
    folder.mkdir()
    gt.safetensors.save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps({"width": 4, "dtype": "float32", **config}))
    (folder / "tokenizer.json").write_bytes(b'{"version": "1.0", "caf\xc3\xa9": 1}')
    return folder


def are_one(first, second):
    """Return whether changing one tensor changes the other."""
    before = first.clone()
    first.add_(1)
    changed = (second == before + 1).all()
    first.copy_(before)
    return bool(changed)


@pytest.fixture
def small(tmp_path):
    """Return a folder with the tensors of a model with tied weights, and write the model's file."""
    (tmp_path / "small_model.py").write_text(MODEL)
    tensors = {"embed.weight": gt.randn(6, 4), "norm.weight": gt.ones(4), "norm.bias": gt.zeros(4)}
    return written(tmp_path / "hf", tensors, tie_word_embeddings=True)


def test_every_dtype_goes_both_ways_bit_by_bit(tmp_path):
    kinds = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64".split()
    tensors = {f"layer.{kind}": gt.randint(0, 2, (3, 2)).to(kind) for kind in kinds}
    tensors |= {
        "a.scalar": gt.tensor(2.5),
        "an.empty": gt.zeros(0, 4),
        "nan": gt.tensor([0, 1]) / 0,
    }
    source = written(tmp_path / "hf", tensors)
    report = convert(source, tmp_path / "gt")
    assert report.fits and report.totals().startswith("14 tensors, 69 numbers, ")
    state = gt.checkpoint.load(tmp_path / "gt").state
    assert state["layer.bfloat16"].dtype == gt.bfloat16
    assert (state["layer.int64"] == tensors["layer.int64"]).all()
    convert(tmp_path / "gt", tmp_path / "again")
    assert values(tmp_path / "again") == values(source)
    for name in ("config.json", "tokenizer.json"):
        assert (tmp_path / "again" / name).read_bytes() == (source / name).read_bytes()
    assert sorted(os.listdir(tmp_path / "again")) == sorted(os.listdir(source))
    assert sorted(os.listdir(tmp_path)) == ["again", "gt", "hf"]


def test_shards_and_their_index(tmp_path):
    tensors = {f"layer.{i}.weight": gt.randn(5, 10) for i in range(6)}
    source = tmp_path / "hf"
    gt.safetensors.save_sharded(tensors, source, max_shard_bytes=450)
    assert len(os.listdir(source)) == 4
    convert(source, tmp_path / "gt", max_shard_size=650)
    assert len(os.listdir(tmp_path / "gt")) == 3, "a manifest and two files of values"
    convert(tmp_path / "gt", tmp_path / "again", max_shard_size="0.45KB")
    assert values(tmp_path / "again") == values(source)
    indexes = [folder / "model.safetensors.index.json" for folder in (source, tmp_path / "again")]
    assert indexes[0].read_bytes() == indexes[1].read_bytes()


def test_floats_become_what_is_asked_for(tmp_path):
    weight = gt.randn(4, 4)
    source = written(tmp_path / "hf", {"weight": weight, "steps": gt.tensor([3], dtype=gt.int64)})
    convert(source, tmp_path / "gt", dtype="bfloat16")
    state = gt.checkpoint.load(tmp_path / "gt").state
    assert state["weight"].dtype == gt.bfloat16 and state["steps"].dtype == gt.int64
    assert (state["weight"] == weight.bfloat16()).all()
    assert json.loads((tmp_path / "gt" / "config.json").read_text())["dtype"] == "bfloat16"
    convert(tmp_path / "gt", tmp_path / "again", dtype="float32")
    again = gt.safetensors.load_file(tmp_path / "again")
    assert (again["weight"] == weight.bfloat16().float()).all() and again["steps"].item() == 3


def test_what_is_tied_stays_tied(small, tmp_path):
    place = f"{tmp_path / 'small_model.py'}:Model"
    report = convert(small, tmp_path / "gt", model=place)
    assert {row.name: row.state for row in report.rows}["head.weight"] == "tied"
    assert report.totals() == "3 tensors, 32 numbers, 128 bytes: 3 matched, 1 tied"
    state = gt.checkpoint.load(tmp_path / "gt").state
    assert are_one(state["head.weight"], state["embed.weight"])
    from small_model import Config, Model

    model = Model(Config(4, True))
    assert model.load_state_dict(state) == ([], [])
    assert model.head.weight is model.embed.weight
    convert(tmp_path / "gt", tmp_path / "again", model=place)
    assert values(tmp_path / "again") == values(small)


def test_a_trained_model_that_ties_is_exported(small, tmp_path):
    place = f"{tmp_path / 'small_model.py'}:Model"
    convert(small, tmp_path / "gt", model=place)
    from small_model import Config, Model

    model = Model(Config(4, True))
    model.load_state_dict(gt.checkpoint.load(tmp_path / "gt").state)
    with gt.no_grad():
        model.embed.weight.mul_(2)
    gt.checkpoint.save(tmp_path / "trained", model.state_dict()).wait()
    (tmp_path / "trained" / "config.json").write_bytes((small / "config.json").read_bytes())
    convert(tmp_path / "trained", tmp_path / "again", model=place)
    found = gt.safetensors.load_file(tmp_path / "again")
    assert sorted(found) == ["embed.weight", "norm.bias", "norm.weight"]
    assert (found["embed.weight"] == model.head.weight).all()
    # Values that differ are both written, and the report says so.
    state = model.state_dict()
    state["head.weight"] = state["head.weight"] + 1
    gt.checkpoint.save(tmp_path / "trained", state).wait()
    report = convert(tmp_path / "trained", tmp_path / "other", model=place)
    assert "its values differ from those of embed.weight, to which Model ties it" in str(report)
    assert "head.weight" in gt.safetensors.load_file(tmp_path / "other")


def test_a_folder_that_has_both_names_keeps_them(tmp_path):
    shared = gt.randn(3, 2)
    gt.checkpoint.save(tmp_path / "gt", {"a": shared, "b": shared}).wait()
    rows = convert(tmp_path / "gt", tmp_path / "hf").rows
    assert [row.state for row in rows] == ["found", "tied"]
    found = gt.safetensors.load_file(tmp_path / "hf")
    assert (found["a"] == shared).all() and (found["b"] == shared).all()


def test_what_does_not_match_is_told_and_nothing_is_written(small, tmp_path, capsys):
    tensors = gt.safetensors.load_file(small)
    tensors["norms.bias"] = tensors.pop("norm.bias")
    gt.safetensors.save_file(tensors, small / "model.safetensors")
    place = f"{tmp_path / 'small_model.py'}:wider"
    given = [str(small), str(tmp_path / "gt"), "--model", place]
    assert main(given) == 1
    told = capsys.readouterr()
    lines = [line.split(maxsplit=1) for line in told.out.splitlines() if line]
    assert dict(line for line in lines if len(line) == 2 and "." in line[0]) == {
        "embed.weight": "6 x 4  float32   mis-shaped: Model has 6 x 5",
        "norm.weight": "4      float32   mis-shaped: Model has 5",
        "norms.bias": "4      float32   unexpected: Model has 'norm.bias'",
        "norm.bias": "5                missing: the source has 'norms.bias'",
        "head.weight": "6 x 5            missing",
    }
    assert "2 missing, 1 unexpected, 2 mis-shaped" in told.out
    assert "nothing was written" in told.err and "--allow-mismatch" in told.err
    assert not (tmp_path / "gt").exists()
    assert main([*given, "--allow-mismatch"]) == 0
    assert list(gt.checkpoint.load(tmp_path / "gt").state) == list(sorted(tensors))


def test_states_of_a_training_run(tmp_path):
    model = nn.Linear(3, 2)
    optimizer = gt.optim.AdamW(model.parameters())
    model(gt.ones(1, 3)).sum().backward()
    optimizer.step()
    manager = gt.checkpoint.Manager(tmp_path / "run", model=model, optimizer=optimizer)
    manager.save(1)
    manager.wait()
    with pytest.raises(ConvertError, match="not a checkpoint, but contains 1 .*\n.*step-000000001"):
        convert(tmp_path / "run", tmp_path / "hf")
    convert(manager.path(1), tmp_path / "hf", model=model)
    found = gt.safetensors.load_file(tmp_path / "hf")
    assert list(found) == ["bias", "weight"] and (found["weight"] == model.weight).all()
    with pytest.raises(ConvertError, match="no state 'ema' in this checkpoint, it has model, opt"):
        convert(manager.path(1), tmp_path / "other", member="ema")


def test_a_target_that_exists(small, tmp_path):
    target = tmp_path / "gt"
    convert(small, target, max_shard_size=32)
    (target / "notes.txt").write_text("mine")
    (target / "notes.pt").write_text("mine")
    with pytest.raises(ConvertError, match="not empty\n  hint: --force"):
        convert(small, target)
    convert(small, target, force=True)
    files = ["config.json", "manifest.json", "notes.pt", "notes.txt", "tokenizer.json"]
    assert sorted(os.listdir(target)) == sorted([*files, "values-00001.safetensors"])
    gt.checkpoint.verify(target)
    with pytest.raises(ConvertError, match="it is the source"):
        convert(small, small, force=True)


def broken(name):
    """Return a function that changes a folder so that it cannot be converted."""
    return {
        "gone": lambda folder: folder.rename(folder.parent / "elsewhere"),
        "empty": lambda folder: (folder / "model.safetensors").unlink(),
        "truncated": lambda folder: os.truncate(folder / "model.safetensors", 300),
        "an index": lambda folder: index(folder, {"a": "model-1.safetensors"}),
        "a part": lambda folder: index(folder, {"a": "model.safetensors"}),
        "outside": lambda folder: index(folder, {"a": "../model.safetensors"}),
        "no index": lambda folder: index(folder, [1]),
        "float8": lambda folder: of_float8(folder / "model.safetensors"),
    }[name]


def of_float8(path):
    entry = {"w": {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [0, 2]}}
    header = json.dumps(entry).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0\0")


def index(folder, places):
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("gone", "hf: there is no such folder\n  hint: name a folder with config.json"),
        ("empty", "no weights found, expected model.safetensors.*\n  hint: .* contains config.j"),
        ("truncated", "model.safetensors: .* truncated\n  hint: .* get it again"),
        ("an index", "index.json: it names model-1.safetensors, which is missing; 0 of 1 files"),
        ("a part", "index.json: model.safetensors lacks a\n  hint"),
        ("outside", "index.json: it names files outside"),
        ("no index", "index.json: not a valid index"),
        ("float8", "tensor 'w' has dtype F8_E4M3, which GT does not have\n  hint: convert"),
    ],
)
def test_sources_that_are_broken(small, tmp_path, capsys, change, told):
    broken(change)(small)
    with pytest.raises(ConvertError, match=told):
        convert(small, tmp_path / "gt")
    assert main([str(small), str(tmp_path / "gt")]) == 2
    assert capsys.readouterr().err.startswith(f"gt convert: {tmp_path}")
    assert not (tmp_path / "gt").exists()


def test_a_checkpoint_that_has_changed(small, tmp_path):
    convert(small, tmp_path / "gt")
    with open(tmp_path / "gt" / "values-00001.safetensors", "r+b") as file:
        file.seek(-3, os.SEEK_END)
        file.write(b"\xff")
    with pytest.raises(ConvertError, match="checksum differs\n  hint: use an earlier"):
        convert(tmp_path / "gt", tmp_path / "hf")


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("small_model.py", "expected a file or a module, a colon and a name"),
        ("nowhere.py:Model", "nowhere.py: there is no such file"),
        ("gt.nowhere:Model", "cannot be imported"),
        ("small_model.py:Modle", "has no Modle; its models are Model"),
        ("small_model.py:number", "it returns a int, expected a Module"),
        ("small_model.py:Config", "cannot be created from config.json: TypeError"),
    ],
)
def test_models_that_are_none(small, tmp_path, monkeypatch, place, told):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConvertError, match=told):
        convert(small, tmp_path / "gt", model=place)


def test_models_without_a_configuration(small, tmp_path):
    place = str(tmp_path / "small_model.py")
    gt.checkpoint.save(tmp_path / "gt", nn.Linear(3, 2).state_dict()).wait()
    assert convert(tmp_path / "gt", tmp_path / "again", model=f"{place}:plain").fits
    with pytest.raises(ConvertError, match="Model takes a configuration, but .* no config.json"):
        convert(tmp_path / "gt", tmp_path / "other", model=f"{place}:Model")


def test_options_that_cannot_be(small, tmp_path, capsys):
    with pytest.raises(ConvertError, match="dtype is 'int8', expected one of keep, bfloat16"):
        convert(small, tmp_path / "gt", dtype="int8")
    with pytest.raises(ConvertError, match="max_shard_size is '5XB', expected"):
        convert(small, tmp_path / "gt", max_shard_size="5XB")
    assert main([str(small), str(tmp_path / "gt"), "--to-hf"]) == 2
    assert "it is not a GT checkpoint" in capsys.readouterr().err


def test_the_command(small, tmp_path):
    command = [sys.executable, "-W", "error", "-m", "gt.convert", "--to-gt", small, tmp_path / "gt"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "embed.weight  6 x 4  float32   found" in done.stdout
    assert "carried along: config.json, tokenizer.json" in done.stdout
    assert f"written: {tmp_path / 'gt'}" in done.stdout


def test_files_of_pytorch(tmp_path):
    torch = pytest.importorskip("torch")
    (tmp_path / "hf").mkdir()
    shared = torch.randn(4, 3)
    state = {"a": shared, "b": torch.nn.Parameter(torch.randn(3).half()), "tied": shared}
    state |= {"column": torch.arange(6).reshape(2, 3)[:, 1], "c": torch.randn(2).bfloat16()}
    torch.save(state, tmp_path / "hf" / "pytorch_model.bin")
    (tmp_path / "hf" / "model.h5").write_bytes(b"other weights")
    (tmp_path / "hf" / "onnx").mkdir()
    report = convert(tmp_path / "hf", tmp_path / "gt")
    assert (
        report.left == ["model.h5", "onnx/"]
        and [row.state for row in report.rows].count("tied") == 1
    )
    found = gt.checkpoint.load(tmp_path / "gt").state
    assert list(found) == list(state) and are_one(found["tied"], found["a"])
    for name, value in state.items():
        assert str(value.dtype) == f"torch.{found[name].dtype.name}"
        assert found[name].tolist() == value.tolist()


def test_shards_of_pytorch(tmp_path):
    torch = pytest.importorskip("torch")
    (tmp_path / "hf").mkdir()
    places = {"a": "pytorch_model-1.bin", "b": "pytorch_model-2.bin"}
    for name, place in places.items():
        torch.save({name: torch.full((2,), ord(name))}, tmp_path / "hf" / place)
    text = json.dumps({"weight_map": places})
    (tmp_path / "hf" / "pytorch_model.bin.index.json").write_text(text)
    convert(tmp_path / "hf", tmp_path / "gt")
    assert gt.checkpoint.load(tmp_path / "gt").state["b"].tolist() == [98, 98]
    os.truncate(tmp_path / "hf" / "pytorch_model-2.bin", 100)
    with pytest.raises(ConvertError, match="pytorch_model-2.bin: .* truncated"):
        convert(tmp_path / "hf", tmp_path / "other")
    torch.save([1, 2], tmp_path / "hf" / "pytorch_model-2.bin")
    with pytest.raises(ConvertError, match="pytorch_model-2.bin: it holds a list, expected"):
        convert(tmp_path / "hf", tmp_path / "other")


@pytest.mark.parametrize("tied", [True, False])
def test_a_model_of_transformers_goes_both_ways(tmp_path, tied):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    sizes = dict(vocab_size=32, hidden_size=16, intermediate_size=32, num_hidden_layers=1)
    config = transformers.Qwen3Config(
        **sizes, num_attention_heads=2, num_key_value_heads=1, head_dim=8, tie_word_embeddings=tied
    )
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    model.save_pretrained(tmp_path / "hf", max_shard_size="4KB")
    convert(tmp_path / "hf", tmp_path / "gt")
    convert(tmp_path / "gt", tmp_path / "again", max_shard_size="6KB")
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "again").eval()
    tokens = torch.arange(8)[None]
    with torch.no_grad():
        assert torch.equal(model(tokens).logits, again(tokens).logits)
    assert values(tmp_path / "again") == values(tmp_path / "hf")
    convert(tmp_path / "gt", tmp_path / "half", dtype="bfloat16")
    half = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "half")
    assert torch.equal(half.state_dict()["lm_head.weight"], model.lm_head.weight.bfloat16())
