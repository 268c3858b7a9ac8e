"""`gt.debug.timeline`: what a block does, as a picture."""

import doctest
import os
import sys

import gt
import pytest
from markup import read
from processes import cluster, embedded_only, one_engine_only

pytestmark = [embedded_only, one_engine_only]


@pytest.fixture
def session():
    """Open a session, as only the last one opened can be recorded."""
    with gt.Session(workers=1) as session:
        yield session


def test_a_block_is_recorded_and_shown(tmp_path, session):
    with gt.debug.timeline() as timeline:
        assert repr(timeline) == "<gt.debug.Timeline: nothing is recorded yet>"
        assert "nothing is recorded yet" in timeline._repr_html_()
        with pytest.raises(RuntimeError, match="nothing is recorded before the end"):
            timeline.save(tmp_path / "early.png")
        x = gt.randn(100, 100)
        (x @ x).relu().sum().item()
    assert timeline.events > 5 and timeline.lanes >= 3 and timeline.seconds > 0
    assert f"{timeline.events:,} events" in repr(timeline)
    shown = read(timeline._repr_html_())
    assert "svg" in shown.seen and not shown.seen & {"script", "foreignobject", "image", "a"}
    assert any("dispatcher" in text for text in shown.texts)
    for name in ("timeline.png", "timeline.svg", "timeline.json"):
        timeline.save(tmp_path / name, width=6, height=4, dpi=50)
        assert (tmp_path / name).stat().st_size > 100
    with pytest.raises(ValueError, match="timeline.gif"):
        timeline.save(tmp_path / "timeline.gif")


def test_a_log_is_shown(trace_file):
    timeline = gt.debug.Timeline(trace_file)
    assert timeline.events > 20 and "<svg " in timeline._repr_html_()


def test_a_large_picture_is_sent_as_pixels(trace_file, monkeypatch):
    monkeypatch.setattr(sys.modules["gt.timeline"], "_AS_SHAPES", 0)
    shown = read(gt.debug.Timeline(trace_file)._repr_html_())
    assert shown.seen == {"div", "img"} and shown.attributes == {"class", "style", "alt", "src"}


def test_names_in_a_log_are_text(trace_file, tmp_path):
    log = tmp_path / "hostile.log"
    text = trace_file.read_text()
    hostile = "<script>alert(1)</script>"
    log.write_text(text.replace("auto_worker_0", hostile))
    page = gt.debug.Timeline(log)._repr_html_()
    assert "script" not in read(page).seen and "&lt;script&gt;" in page


def test_a_log_that_cannot_be_read_is_reported(tmp_path):
    with pytest.raises(OSError, match="missing.log"):
        gt.debug.Timeline(tmp_path / "missing.log")
    (tmp_path / "empty.log").write_text("")
    with pytest.raises(ValueError, match="empty.log"):
        gt.debug.Timeline(tmp_path / "empty.log")


def test_the_error_of_a_block_is_the_one_that_is_raised(session):
    with pytest.raises(ZeroDivisionError), gt.debug.timeline():
        print(1 // 0)


def test_of_several_sessions_here_the_last_is_recorded(session):
    gt.ones(3).sum().item()
    with gt.Session(workers=1):
        gt.ones(3).sum().item()
    with pytest.raises(ConnectionError, match="only the last one can"), gt.debug.timeline():
        pass


def test_the_example(session):
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    module = sys.modules["gt.timeline"]
    assert doctest.testmod(module, extraglobs={"gt": gt}, optionflags=options).failed == 0


def test_a_session_on_a_server_is_recorded():
    with cluster(1) as (address, _), gt.Session(address):
        with gt.debug.timeline() as timeline:
            gt.ones(100).sum().item()
        assert timeline.events > 5 and ">w0<" in timeline._repr_html_()


def test_a_wrong_key_is_reported(tmp_path):
    wrong = tmp_path / "key"
    wrong.touch(mode=0o600)
    wrong.write_text("0" * 64)
    with (
        cluster(1) as (address, _),
        gt.Session(address),
        pytest.raises(ConnectionError, match="timeline: "),
        gt.debug.timeline(key_file=wrong),
    ):
        pass


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_leaves_the_recording_and_the_log_to_its_parent(tmp_path, session):
    read_end, write_end = os.pipe()
    with gt.debug.timeline() as timeline:
        gt.ones(10).sum().item()
        child = os.fork()
        # Its child leaves the block at once.
        grandchild = os.fork() if child == 0 else 0
        if child == 0 and grandchild:
            os.close(write_end)
            os.read(read_end, 1)  # until the block of the parent has ended
            os.waitpid(grandchild, 0)
            del timeline
            os._exit(0)
    if child == 0:
        os._exit(0)
    os.close(write_end)
    os.waitpid(child, 0)
    os.close(read_end)
    timeline.save(tmp_path / "timeline.svg")
