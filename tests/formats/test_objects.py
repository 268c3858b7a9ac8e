"""Whole modules and configurations in files: classes by name, and no code."""

import argparse
import collections
import dataclasses
import enum
import json
import pathlib
import types
from typing import NamedTuple

import gt
import pytest
from gt import _gt


class Color(enum.Enum):
    RED = 1


class Size(NamedTuple):
    width: int
    values: gt.Tensor


@dataclasses.dataclass
class Options:
    lr: float = 0.1
    layers: list = dataclasses.field(default_factory=list)
    color: Color = Color.RED


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    x: int


class Attributes(dict):
    __getattr__ = dict.__getitem__


class Net(gt.nn.Module):
    def __init__(self, options):
        super().__init__()
        self.options, self.act = options, gt.nn.functional.relu
        self.embedding, self.head = gt.nn.Embedding(5, 4), gt.nn.Linear(4, 5, bias=False)
        self.head.weight = self.embedding.weight
        self.blocks = gt.nn.ModuleList([gt.nn.Sequential(gt.nn.Linear(4, 4), gt.nn.BatchNorm1d(4))])
        self.register_buffer("count", gt.arange(3))

    def forward(self, x):
        x = self.embedding(x)
        for block in self.blocks:
            x = self.act(block(x))
        return self.head(x)


CLASSES = [Attributes, Color, Frozen, Net, Options, Size]


def saved(value, path, **options):
    gt.save(value, path)
    return gt.load(path, **options)


PLAIN = [
    argparse.Namespace(lr=1, x=[(1, 2)]),
    types.SimpleNamespace(a=1),
    pathlib.Path("/a/b"),
    pathlib.PurePosixPath("a"),
    collections.OrderedDict(a=1),
    collections.defaultdict(list, {"a": [1]}),
    collections.Counter("aab"),
    collections.deque([1, 2], maxlen=3),
]


@pytest.mark.parametrize("value", PLAIN, ids=lambda value: type(value).__name__)
def test_plain_objects_are_always_read(tmp_path, value):
    again = saved(value, tmp_path / "file.gt")
    assert type(again) is type(value) and again == value


OF_PROGRAMS = [Color.RED, Options(0.3, [1, 2]), Frozen(3), Attributes(a=Attributes(c=2)), Net]


@pytest.mark.parametrize("value", OF_PROGRAMS, ids=lambda value: type(value).__name__)
def test_objects_of_programs_are_read_if_the_user_says_so(tmp_path, value):
    gt.save([value], tmp_path / "file.gt")
    with pytest.raises(ValueError, match=r"weights_only=False.*add_safe_globals"):
        gt.load(tmp_path / "file.gt")
    assert gt.load(tmp_path / "file.gt", weights_only=False) == [value]
    with gt.serialization.safe_globals(CLASSES):
        assert gt.load(tmp_path / "file.gt") == [value]
    assert gt.serialization.get_safe_globals() == []


def test_whole_models(tmp_path):
    model = Net(Options()).eval()
    again = saved(
        {"model": model, "weight": model.head.weight}, tmp_path / "file.gt", weights_only=False
    )
    x = gt.arange(5)
    assert again["model"](x).equal(model(x)) and not again["model"].training
    tied = again["model"].embedding.weight
    assert again["model"].head.weight is tied and again["weight"] is tied
    assert again["model"].options == model.options
    again["model"](x).sum().backward()
    assert tied.grad is not None and model.head.weight.grad is None
    names = gt.safetensors.load_file(tmp_path / "file.gt")
    assert "model.blocks.0.1.running_mean" in names


def test_modules_of_gt_need_no_trust(tmp_path):
    model = gt.nn.Sequential(gt.nn.Linear(2, 3), gt.nn.GELU(), gt.nn.LSTM(3, 4))
    again = saved(model, tmp_path / "file.gt")
    assert repr(again) == repr(model)
    assert again(gt.ones(1, 2))[0].equal(model(gt.ones(1, 2))[0])


def test_named_tuples_have_tensors(tmp_path):
    again = saved(Size(1, gt.ones(2)), tmp_path / "file.gt", weights_only=False)
    assert type(again) is Size and again.values.tolist() == [1, 1]


def test_objects_may_refer_to_themselves(tmp_path):
    node = types.SimpleNamespace(name="a")
    node.me, node.all = node, [node]
    again = saved(node, tmp_path / "file.gt")
    assert again.me is again and again.all[0] is again


@pytest.mark.parametrize(
    "written, words",
    [
        ({"is": "named", "name": "os:system"}, "os.system"),
        (
            {"is": "object", "class": "subprocess:Popen", "new": {"is": "list", "items": ["ls"]}},
            "Popen",
        ),
        ({"is": "enum", "class": "builtins:exec", "value": "print(1)"}, "exec"),
        ({"is": "object", "class": "gt:Session"}, "Session"),
        ({"is": "object", "class": "gt.nn.modules.utils:_pair"}, "no class"),
        ({"is": "again", "object": 7}, "broken"),
    ],
)
def test_hostile_objects_are_refused(tmp_path, written, words):
    text = {"gt.structure": json.dumps(written)}
    (tmp_path / "file.gt").write_bytes(_gt.safetensors_bytes([], text))
    with pytest.raises(ValueError, match=words):
        gt.load(tmp_path / "file.gt")


def test_trusted_files_call_no_functions(tmp_path):
    call = {"is": "object", "class": "os:system", "new": {"is": "list", "items": ["true"]}}
    made = {"is": "object", "class": "subprocess:Popen", "new": {"is": "list", "items": ["true"]}}
    for written in (call, made, {"is": "enum", "class": "subprocess:Popen", "value": "true"}):
        text = {"gt.structure": json.dumps(written)}
        (tmp_path / "file.gt").write_bytes(_gt.safetensors_bytes([], text))
        with pytest.raises(ValueError, match="class|values"):
            gt.load(tmp_path / "file.gt", weights_only=False)


def test_classes_that_are_gone_are_told(tmp_path):
    gt.save(Options(), tmp_path / "file.gt")
    file = (tmp_path / "file.gt").read_bytes()
    (tmp_path / "file.gt").write_bytes(file.replace(b":Options", b":Optionz"))
    with pytest.raises(ValueError, match="Optionz, which is not defined here"):
        gt.load(tmp_path / "file.gt", weights_only=False)
