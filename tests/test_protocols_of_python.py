"""Tensors in Python's protocols, as PyTorch's: formatted, as numbers, as indices, in conditions."""

import operator

import gt
import numpy as np
import pytest

torch = pytest.importorskip("torch")

#: An expression of a framework `m` and its function `t`, which makes tensors of one dtype.
SAME = """
f"{t(1.5)}"
f"{t(1.23456):.3f}"
f"{t(3, 'int64')}"
f"{t(3, 'int64'):05d}"
f"{t(True, 'bool')}"
f"{t(1 + 2j, 'complex64')}"
f"{t(0.1):.10f}"
f"{t(1.5, 'bfloat16')} {t(1.5, 'float16'):>8}"
f"{t(1.5).requires_grad_():.2f}"
f"{t(2.5):d}"
f"{t([1.0]):.2f}"
f"{t([[1.0, 2.0]]):>30}"
f"{m.nn.Parameter(t(1.5)):.1f}"
"%.2f %d" % (t(1.5), t(1))
"{:.1f} {}".format(t(1.0), t(2.5))
operator.index(t(2, "int64"))
operator.index(t([[2]], "int64"))
operator.index(t(True, "bool"))
operator.index(t([2, 3], "int64"))
operator.index(t(2.0))
operator.index(t([], "int64"))
int(t(2.7))
int(t([2.7]))
int(t(1e20))
int(t([1, 2]))
int(t([]))
int(t(float("nan")))
int(t(float("inf")))
int(t(1 + 0j, "complex64"))
int(t(1 + 1j, "complex64"))
float(t([1, 2]))
float(t(3, "int64"))
float(t(1 + 2j, "complex64"))
complex(t([1, 2]))
complex(t(1.0))
bool(t([]))
bool(t([1, 2]))
bool(t([[0]]))
bool(t(float("nan")))
m.arange(5)[range(2)].tolist()
m.arange(6).view(2, 3)[range(2)].tolist()
m.arange(6).view(2, 3)[:, range(1, 3)].tolist()
m.arange(6).view(2, 3)[(0, 1), (1, 2)].tolist()
m.arange(5)[range(0)].tolist()
m.arange(5)[t(2, "int64"):].tolist()
list(range(t(3, "int64")))
list(range(t([3], "int64")))
list(range(t(3.0)))
[1, 2, 3][t(1, "int64")]
[1, 2, 3][t(True, "bool")]
[1, 2, 3][t([1, 2], "int64")]
[1, 2, 3][t(0, "int64") : t(2, "int64")]
"ab" * t(2, "int64")
hex(t(10, "int64"))
hex(t(10.0))
len(t(1.0))
iter(t(1.0))
""".strip().splitlines()


def result(line, framework):
    """Return the value of an expression, or the class of its exception and its first words."""

    def make(values, dtype="float32"):
        return framework.tensor(values, dtype=getattr(framework, dtype))

    try:
        return eval(line, {"m": framework, "t": make, "operator": operator})
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("line", SAME)
def test_as_pytorch(line):
    given, want = result(line, gt), result(line, torch)
    if isinstance(want, tuple):
        assert given[0] is want[0], given
    else:
        assert type(given) is type(want) and given == want


def test_errors_say_what_pytorchs_say():
    for line, words in {
        "bool(t([1, 2]))": "Boolean value of Tensor with more than one value is ambiguous",
        "bool(t([]))": "Boolean value of Tensor with no values is ambiguous",
        "operator.index(t(2.0))": "only integer tensors of a single element can be converted to",
        "f'{t([1.0]):.2f}'": "unsupported format string passed to Tensor.__format__",
        "int(t(float('nan')))": "cannot convert float NaN to integer",
    }.items():
        assert words in result(line, torch)[1] and words in result(line, gt)[1]


def test_a_tensor_of_several_elements_is_formatted_as_its_text():
    for x in (gt.ones(2, 2), gt.nn.Parameter(gt.ones(())), gt.ones(1)):
        assert f"{x}" == str(x) == repr(x)


def test_an_array_is_indexed_by_a_tensor():
    array = np.arange(5)
    assert array[gt.tensor(2, dtype=gt.int64)] == 2
    assert array[gt.tensor([1, 2], dtype=gt.int64)].tolist() == [1, 2]


def test_copies_are_refused_where_they_are_needed():
    x, array = gt.ones(2), np.ones(2)
    assert gt.asarray(x, copy=False) is x and gt.asarray(x, copy=True) is not x
    assert np.asarray(x, copy=True).flags.writeable
    assert np.asarray(x, copy=False).tolist() == [1, 1]
    for make in (
        lambda: gt.asarray(array, copy=False),
        lambda: gt.asarray([1.0], copy=False),
        lambda: gt.asarray(x, dtype=gt.float64, copy=False),
        lambda: gt.from_dlpack(array, copy=False),
        lambda: np.asarray(x, dtype="float64", copy=False),
    ):
        with pytest.raises(ValueError, match="copy"):
            make()
    with pytest.raises(BufferError, match="copy=False forbids"):
        np.from_dlpack(x, copy=False)
    assert np.from_dlpack(x, copy=True).tolist() == [1, 1]


def test_results_of_frexp_are_named():
    x = [3.0, -0.25, 0.0]
    for given in (gt.frexp(gt.tensor(x)), gt.tensor(x).frexp()):
        want = torch.frexp(torch.tensor(x))
        assert given._fields == ("mantissa", "exponent")
        assert given.mantissa.tolist() == want.mantissa.tolist()
        assert given.exponent.tolist() == want.exponent.tolist()
        assert given.exponent.dtype == gt.int32
        assert isinstance(given, gt.return_types.frexp)


def test_pinned_memory_is_accepted_without_effect():
    for x in (
        gt.ones(2, pin_memory=True),
        gt.tensor([1.0], pin_memory=True),
        gt.zeros_like(gt.ones(2), pin_memory=True),
        gt.ones(1).new_zeros(2, pin_memory=True),
        gt.arange(2, pin_memory=True),
    ):
        assert not x.is_pinned()


def test_saving_on_the_cpu_is_refused():
    from gt.autograd.graph import save_on_cpu

    with pytest.raises(NotImplementedError, match="GT does not have it\n  hint: .*--spill-dir"):
        save_on_cpu(pin_memory=True)
