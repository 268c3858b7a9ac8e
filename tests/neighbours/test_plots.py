"""matplotlib, seaborn and PIL take tensors as they take arrays."""

import io

import gt
import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed: make test")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

LINE = np.array([1.0, 4.0, 9.0], dtype=np.float32)
PICTURE = np.random.default_rng(0).random((4, 5)).astype(np.float32)


@pytest.fixture
def plt():
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.gcf().canvas.draw()
    pyplot.close("all")


CALLS = {
    "plot": lambda plt, t: plt.plot(t(LINE))[0].get_ydata(),
    "plot of columns": lambda plt, t: [line.get_ydata() for line in plt.plot(t(PICTURE))],
    "plot of both": lambda plt, t: plt.plot(t(LINE), t(LINE * 2))[0].get_xydata(),
    "plot of losses": lambda plt, t: plt.plot([t(each) for each in LINE])[0].get_ydata(),
    "plot of 16 bits": lambda plt, t: plt.plot(t(LINE.astype(np.float16)))[0].get_ydata(),
    "scatter": lambda plt, t: plt.scatter(t(LINE), t(LINE), c=t(LINE), s=t(LINE)).get_offsets(),
    "hist": lambda plt, t: plt.hist(t(PICTURE.ravel()), bins=4)[0],
    "hist of columns": lambda plt, t: plt.hist(t(PICTURE), bins=4)[0],
    "hist of several": lambda plt, t: plt.hist([t(LINE), t(LINE[:2])], bins=t(LINE))[0],
    "bar": lambda plt, t: [bar.get_height() for bar in plt.bar(t(np.arange(3)), t(LINE))],
    "errorbar": lambda plt, t: plt.errorbar(t(LINE), t(LINE), yerr=t(LINE))[0].get_ydata(
        orig=False
    ),
    "fill_between": lambda plt, t: (
        plt.fill_between(t(LINE), t(LINE * 0), t(LINE)).get_paths()[0].vertices
    ),
    "imshow": lambda plt, t: plt.imshow(t(PICTURE)).get_array(),
    "imshow of bools": lambda plt, t: plt.imshow(t(PICTURE > 0.5)).get_array(),
    "imshow of colours": lambda plt, t: plt.imshow(t(np.stack([PICTURE] * 3, -1))).get_array(),
    "contourf": lambda plt, t: plt.contourf(t(PICTURE)).levels,
    "boxplot": lambda plt, t: [box.get_ydata() for box in plt.boxplot(t(PICTURE))["medians"]],
    "stem": lambda plt, t: plt.stem(t(LINE)).markerline.get_ydata(),
}


@pytest.mark.parametrize("name", CALLS)
def test_plots_are_those_of_arrays(name, plt):
    found, expected = CALLS[name](plt, gt.tensor), CALLS[name](plt, np.asarray)
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-6)


def test_tensors_with_a_history_are_refused(plt):
    """As in PyTorch."""
    x = gt.tensor(LINE, requires_grad=True)
    for draw in (plt.plot, plt.hist, lambda y: plt.imshow(y[None])):
        with pytest.raises(RuntimeError, match="detach"):
            draw(x)
    assert plt.plot(x.detach())[0].get_ydata().tolist() == LINE.tolist()


def test_bfloat16_is_drawn(plt):
    assert plt.plot(gt.tensor(LINE).bfloat16())[0].get_ydata().tolist() == LINE.tolist()


def test_values_may_be_written_after_to_numpy():
    x = gt.tensor(LINE)
    array = x.to_numpy()
    array[0] = 7.0
    assert x.tolist() == LINE.tolist()


def test_pictures_of_pil():
    image = pytest.importorskip("PIL.Image", reason="pillow comes with matplotlib")
    picture = gt.tensor((PICTURE * 255).astype(np.uint8))
    made = image.fromarray(picture.numpy())
    assert made.size == (5, 4)
    file = io.BytesIO()
    made.save(file, format="png")
    again = image.open(io.BytesIO(file.getvalue()))
    assert gt.tensor(np.asarray(again)).equal(picture) and gt.tensor(again).equal(picture)


def test_seaborn(plt):
    sns = pytest.importorskip("seaborn", reason="seaborn: make test-neighbours")
    x, y = gt.arange(3), gt.tensor(LINE)
    assert sns.lineplot(x=x, y=y).lines[0].get_ydata().tolist() == LINE.tolist()
    plt.clf()
    assert sum(bar.get_height() for bar in sns.histplot(y, bins=2).patches) == 3
    plt.clf()
    drawn = sns.heatmap(gt.tensor(PICTURE)).collections[0].get_array()
    np.testing.assert_array_equal(drawn.reshape(4, 5), PICTURE)
