"""Views share memory as in PyTorch: a program has the same results with both libraries."""

import gt
import pytest
from gt import nn

torch = pytest.importorskip("torch", reason="pytorch: make test-all")


def filled_row(m):
    x = m.zeros(3, 4)
    x[0].fill_(1)
    return [x]


def reshaped(m):
    w = m.zeros(6)
    w.view(2, 3)[1].add_(2)
    w.view(-1)[0] = 1
    return [w]


def chunks(m):
    t = m.ones(4)
    t.chunk(2)[0].zero_()
    return [t]


def transposed(m):
    x = m.zeros(2, 3)
    turned = x.t()
    x.add_(1)
    turned[0, 1] = 5
    return [x, turned]


def siblings_outlive_their_base(m):
    x = m.zeros(4)
    part = x[1:3]
    column = part.view(2, 1)
    del x
    column.fill_(3)
    part.add_(1)
    return [part, column]


def detached(m):
    x = m.ones(3)
    alias = x.detach()
    alias.mul_(4)
    return [x, alias]


def gradients_through_a_changed_part(m):
    x = m.ones(3, requires_grad=True)
    y = x * 2
    y[1:].mul_(3)
    y.sum().backward()
    return [x.grad]


def a_part_from_another(m):
    x = m.zeros(2, 2, requires_grad=True)
    y = x * 1
    y.T[0].add_(y[1] * 3)
    (y * m.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    return [x.grad]


def copies_stay_apart(m):
    x = m.arange(12).reshape(3, 4)
    flat = x.t().reshape(-1)
    flat.fill_(0)
    return [x, flat]


def selected(m):
    x = m.zeros(2, 3)
    x.unbind(0)[1][2] = 9
    x.select(1, 0).fill_(4)
    m.diagonal(x).sub_(1)
    return [x]


def through_data(m):
    x = m.zeros(4)
    part = x[:2]
    inner = part[1:]
    x.data.fill_(3)
    return [part, inner]


def turned_in_place(m):
    x = m.arange(6).reshape(2, 3).clone()
    row = x[0]
    x.t_()
    x[0, 0] = 9
    return [x, row]


def diagonals(m):
    x = m.arange(24).reshape(2, 3, 4).clone()
    x.diagonal().fill_(50)
    apart = x.diagonal(1, 2, 0)
    x.add_(1)
    apart.mul_(-1)
    y = m.zeros(4, 6)
    y[1:, ::2].diagonal(-1).add_(3)
    return [x, apart, y]


def windows(m):
    x = m.arange(5).clone()
    apart, overlapping = x.unfold(0, 2, 3), x.unfold(0, 3, 1)
    apart[1].fill_(9)
    return [x, overlapping, x.as_strided((2, 2), (1, 2))]


def gradients_through_a_changed_diagonal(m):
    x = m.ones(2, 3, 2, requires_grad=True)
    y = x * 2
    y.diagonal(0, 0, 2).mul_(3)
    y.sum().backward()
    return [x.grad]


def parts_of_complex_numbers(m):
    x = m.tensor([1 + 2j, 3 + 4j])
    x.real[0] = 9
    x.imag.mul_(10)
    x.real = m.tensor([5.0, 6.0])
    parts = m.zeros(3, 2)
    m.view_as_complex(parts).add_(1j)
    return [x, m.view_as_real(x), parts]


PROGRAMS = [
    filled_row,
    reshaped,
    chunks,
    transposed,
    siblings_outlive_their_base,
    detached,
    gradients_through_a_changed_part,
    a_part_from_another,
    copies_stay_apart,
    selected,
    through_data,
    turned_in_place,
    diagonals,
    windows,
    gradients_through_a_changed_diagonal,
    parts_of_complex_numbers,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_has_the_results_of_pytorch(program):
    assert [of.tolist() for of in program(gt)] == [of.tolist() for of in program(torch)]


def test_layouts_are_those_of_pytorch():
    for m in (gt, torch):
        x = m.zeros(3, 4)
        assert x.t().stride() == (1, 4) and not x.t().is_contiguous()
        assert x[1:, 2:].storage_offset() == 6 and x.t().contiguous().is_contiguous()
        cube = m.zeros(2, 3, 4)
        assert cube.diagonal(0, 0, 2).stride() == (4, 13)
        assert cube[:, 1:].diagonal(1, 0, 2).storage_offset() == 5
        assert m.zeros(5).unfold(0, 3, 1).stride() == (1, 1)
        assert m.view_as_real(m.zeros(2, 3).t() * 1j).stride()[2] == 1


@pytest.mark.parametrize("m", [gt, torch])
def test_invalid_writes_and_views(m):
    leaf = m.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError):
        leaf[0].fill_(1)
    with pytest.raises(RuntimeError):
        m.ones(1).expand(3).add_(1)
    with pytest.raises(RuntimeError):
        m.zeros(2, 3).t().view(-1)
    with pytest.raises(RuntimeError):
        m.view_as_complex(m.zeros(2, 3).t())


def test_overlapping_windows_cannot_be_written_to():
    """PyTorch writes them, in an unspecified order."""
    with pytest.raises(RuntimeError, match="are one element of its base"):
        gt.zeros(5).unfold(0, 3, 1).add_(1)


def test_a_moving_average_of_a_state():
    layer = nn.Linear(2, 2)
    before = layer.weight.detach().numpy()
    for value in layer.state_dict().values():
        value.mul_(0.5)
    assert (layer.weight.detach().numpy() == before * 0.5).all()


def test_a_view_keeps_pending_changes_when_its_base_is_dropped():
    for view in (lambda b: b.detach(), lambda b: b[:2], lambda b: b.reshape(1, 2)):
        base = gt.zeros(2)
        seen = view(base)
        seen.add_(1)
        del base
        assert seen.sum().item() == 2
        seen.add_(1)
        assert seen.sum().item() == 4
        base = gt.zeros(2)
        seen = view(base)
        base.add_(3)
        del base
        assert seen.sum().item() == 6


def test_a_slice_of_the_whole_tensor_is_a_view():
    for lib in (gt, pytest.importorskip("torch")):
        base = lib.zeros(2, 3)
        for whole in (base[:], base[...], base[:, :]):
            base.add_(1)
            before = base.sum().item()
            assert whole.sum().item() == before
            whole.mul_(2)
            assert base.sum().item() == 2 * before
        leaf = lib.ones(2, requires_grad=True)
        leaf[:].sum().backward()
        assert leaf.grad.tolist() == [1, 1] and not leaf[:].is_leaf


#: In-place changes of an expanded tensor. PyTorch allows those that write one value, or the last of
#: several values, and refuses all others.
EXPANDED = {
    "row": lambda m, y: y[1].add_(2),
    "a column": lambda m, y: y.__setitem__((slice(None), 1), 5.0),
    "an item": lambda m, y: y.__setitem__((0, 0), 5),
    "rows": lambda m, y: y.__setitem__(slice(0, 2), 5),
    "a column of values": lambda m, y: y.__setitem__((slice(None), 1), m.arange(3.0)),
    "all": lambda m, y: y.fill_(7),
    "zero": lambda m, y: y.zero_(),
    "mask": lambda m, y: y.__setitem__(y == 0, 5.0),
    "some of a mask": lambda m, y: y.masked_fill_(y == 1, 2.0),
    "masked_fill_": lambda m, y: y.masked_fill_(y == 0, 2.0),
    "index": lambda m, y: y.__setitem__(m.tensor([0, 2], dtype=m.int64), 3.0),
    "an index of values": lambda m, y: y.__setitem__(
        m.tensor([0, 2], dtype=m.int64), m.arange(8.0).view(2, 4)
    ),
    "index_fill_": lambda m, y: y.index_fill_(0, m.tensor([0], dtype=m.int64), 2.0),
    "tril_": lambda m, y: y.tril_(),
    "add_": lambda m, y: y.add_(1),
    "copy_": lambda m, y: y.copy_(m.ones(3, 4)),
    "clamp_": lambda m, y: y.clamp_(1),
    "normal_": lambda m, y: y.normal_(),
    "index_add_": lambda m, y: y.index_add_(0, m.tensor([0], dtype=m.int64), m.ones(1, 4)),
}


@pytest.mark.parametrize("name", EXPANDED)
@pytest.mark.filterwarnings("ignore")
def test_an_expanded_tensor_is_written_as_pytorch_does(name):
    def outcome(m):
        x = m.tensor([[0.0, 1.0, 0.0, 3.0]])
        try:
            EXPANDED[name](m, x.expand(3, 4))
        except RuntimeError:
            return "refused"
        return x.tolist()

    assert outcome(gt) == outcome(torch)


def data_is_shared(m):
    x, y = m.zeros(4), m.ones(4)
    view = x[:2]
    x.data = y
    view.add_(5)
    y.add_(1)
    x.mul_(3)
    return [x, view, y]


def data_of_another_shape(m):
    x, y = m.zeros(4), m.ones(2, 3)
    x.data = y[0]
    x.add_(1)
    return [x, y]


def data_of_a_parameter(m):
    weight = m.nn.Parameter(m.zeros(2))
    weight.data = m.ones(2)
    (weight * 3).sum().backward()
    return [weight, weight.grad]


def memory_of_another(m):
    x, y = m.zeros(2), m.ones(3)
    view = x[:1]
    x.set_(y)
    x.add_(1)
    view.add_(4)
    return [x, y, view]


@pytest.mark.parametrize(
    "program", [data_is_shared, data_of_another_shape, data_of_a_parameter, memory_of_another]
)
def test_memory_is_shared_as_in_pytorch(program):
    assert [of.tolist() for of in program(gt)] == [of.tolist() for of in program(torch)]


def test_a_long_chain_of_views_is_written():
    x = view = gt.zeros(8)
    for _ in range(20_000):
        view = view.view(8)
    view.add_(1)
    assert x.tolist() == [1] * 8


def an_expanded_tensor_without_its_base(m):
    y = m.zeros(4).expand(3, 4)
    y[0, 1] = 9
    return [y]


def windows(m):
    x = m.arange(4.0)
    found = x.unfold(0, 2, 1)
    found[0, 1] = 9
    found[2].fill_(5)
    return [x, found]


def a_transposed_base_that_is_gone(m):
    y = m.arange(6.0).reshape(2, 3).t()
    y[0].expand(2, 2).fill_(9)
    return [y]


def gradients_through_an_expanded_row(m):
    x, w = m.tensor([1.0, 2.0, 3.0]), m.ones(3, requires_grad=True)
    x.expand(2, 3)[0].mul_(w)
    x.sum().backward()
    return [w.grad, x.detach()]


def history_after_data(m):
    x, y, w = m.zeros(3), m.ones(3), m.full((3,), 2.0, requires_grad=True)
    x.data = y
    x.mul_(w)
    x.sum().backward()
    return [w.grad, x.detach(), y]


def data_twice(m):
    x = m.ones(4)
    x.data = m.ones(4)
    view = x.reshape(2, 2)
    x.data = m.zeros(6)
    x.add_(1)
    return [view, x]


@pytest.mark.parametrize(
    "program",
    [
        an_expanded_tensor_without_its_base,
        windows,
        a_transposed_base_that_is_gone,
        gradients_through_an_expanded_row,
        history_after_data,
        data_twice,
    ],
)
def test_overlapping_views_and_data(program):
    assert [of.tolist() for of in program(gt)] == [of.tolist() for of in program(torch)]
