"""Recordings in a browser: made, looked at by pointer, keys and text, and downloaded."""

import json
import os
import random
import re
from pathlib import Path

import pytest
from browsers import needs_browser
from processes import cluster, embedded_only, one_engine_only, program, start_program
from web_pages import page_of_server

pytestmark = [needs_browser, embedded_only, one_engine_only]

HOSTILE = "<img src=x onerror=alert(1)>"

SHOWN = "document.querySelector('.legend li') !== null"
SUMMARY = ".timeline + .summary"
SEEN = f"document.querySelector({SUMMARY!r}).textContent"
ROWS = "document.querySelectorAll('.table button').length"


@pytest.fixture(scope="module")
def shown():
    """A page with two workers, a session that computes and an idle one with a hostile name."""
    with cluster(2, "--web", "0") as (address, processes), program(address):
        client = start_program("web/answers_its_status", address, HOSTILE)
        try:
            assert client.stdout.readline() == "at work\n"
            yield page_of_server(processes[0])
        finally:
            client.kill()
            client.communicate()


def record(tab, page) -> None:
    """Record for a second, and wait until the recording is shown."""
    tab.page.goto(f"{page.base}/#/timeline")
    tab.page.select_option("#seconds", "1")
    tab.page.click("text=Record 1 s")
    tab.wait_until("/^#\\/timeline\\/\\d+$/.test(location.hash)")
    tab.wait_until(SHOWN)


def test_a_recording_is_made_looked_at_and_downloaded(new_tab, shown):
    tab = new_tab()
    tab.sign_in(shown.link)
    record(tab, shown)
    said = tab.text("#timeline-summary")
    assert "rows" in said and "instructions on workers" in said, said
    assert "matmul" in tab.text(".legend")
    tab.wait_until(f"{ROWS} > 0")
    tab.shot("timeline")

    # By keys: a row, a span of it, and closer to it.
    tab.page.focus(".lanes canvas")
    for _ in range(5):
        tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press(".")
    chosen = tab.text(".span-details")
    assert "(worker)" in chosen and "takes" in chosen, chosen
    before = tab.text(SUMMARY)
    tab.page.keyboard.press("Enter")
    tab.wait_until(f"{SEEN} !== {before!r}")
    tab.shot("timeline-zoomed")
    tab.page.keyboard.press(".")
    assert tab.text(".span-details") != chosen
    tab.page.keyboard.press("0")
    tab.wait_until(f"/All of it/.test({SEEN})")

    # By the wheel and by dragging.
    box = tab.page.locator(".lanes canvas").bounding_box()
    middle = (box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.8)
    tab.page.mouse.move(*middle)
    tab.page.mouse.wheel(0, -2000)
    tab.wait_until(f"/^In sight/.test({SEEN})")
    before = tab.text(SUMMARY)
    tab.page.mouse.down()
    tab.page.mouse.move(middle[0] - 200, middle[1], steps=4)
    tab.page.mouse.up()
    tab.wait_until(f"{SEEN} !== {before!r}")

    # The longest span in sight, by the table.
    tab.page.click("text=Show all")
    tab.wait_until(f"/All of it/.test({SEEN})")
    row = tab.page.locator(".table tr", has=tab.page.locator("button")).first
    name = row.locator("td").first.inner_text()
    row.locator("button").click()
    assert tab.text(".span-details").startswith(name)

    with tab.page.expect_download() as begun:
        tab.page.click("text=Open in Perfetto")
    file = begun.value
    assert file.suggested_filename.startswith("gt-recording-"), file.suggested_filename
    trace = json.loads(Path(file.path()).read_text())["traceEvents"]
    number = int(said.split(" with ")[1].split(" events")[0].replace(",", ""))
    assert sum(event["ph"] in "Xib" for event in trace) == number
    assert tab.complaints == []


def test_a_session_is_recorded_from_its_page_and_others_are_grey(new_tab, shown):
    tab = new_tab()
    tab.sign_in(shown.link)
    status = shown.wait_for("two sessions", lambda _, data: len(data.get("sessions", [])) == 2)
    session = next(of for of in status["sessions"] if not of["name"].startswith(HOSTILE))
    tab.page.goto(f"{shown.base}/#/sessions/{session['number']}")
    tab.page.click("text=Record 5 s")
    tab.wait_until("/^#\\/timeline\\/\\d+$/.test(location.hash)")
    tab.wait_until("/Recording \\d+ records: \\d of 5 s/.test(document.body.innerText)")
    # Meanwhile no other recording begins.
    assert tab.page.is_disabled("text=Record 5 s")
    tab.wait_until(SHOWN)
    chosen = "document.querySelector('#highlight').selectedOptions[0].textContent"
    assert tab.page.evaluate(chosen) == session["name"]
    assert "other sessions are grey" in tab.text("#timeline-summary")
    tab.page.select_option("#highlight", "")
    assert "other sessions are grey" not in tab.text("#timeline-summary")
    assert tab.complaints == []


def test_it_fits_phones_and_the_dark_and_its_recordings_are_listed(new_tab, shown):
    desk = new_tab()
    desk.sign_in(shown.link)
    record(desk, shown)
    for scheme in ("light", "dark"):
        phone = new_tab(viewport={"width": 360, "height": 740}, color_scheme=scheme)
        phone.sign_in(shown.link)
        phone.page.goto(f"{shown.base}/#/timeline")
        phone.wait_until(SHOWN)
        widths = "[document.documentElement.scrollWidth, innerWidth]"
        scrolled, inner = phone.page.evaluate(widths)
        assert scrolled <= inner
        phone.shot(f"timeline-phone-{scheme}")
        assert phone.complaints == []
    desk.page.goto(f"{shown.base}/#/timeline/999")
    desk.wait_until("/Recording 999 is not kept any more/.test(document.body.innerText)")
    assert desk.complaints == []


def test_two_fingers_zoom_and_one_pans(new_tab, shown):
    tab = new_tab(viewport={"width": 360, "height": 740}, has_touch=True)
    tab.sign_in(shown.link)
    record(tab, shown)
    box = tab.page.locator(".lanes canvas").bounding_box()
    y = box["y"] + box["height"] * 0.7
    touches = tab.page.context.new_cdp_session(tab.page)

    def touch(kind: str, *places: float) -> None:
        points = [{"x": box["x"] + place, "y": y, "id": at} for at, place in enumerate(places)]
        touches.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def in_sight() -> tuple[float, float]:
        """Return how many milliseconds are in sight, and at which the first is."""
        said = tab.text(SUMMARY)
        found = re.match(r"In sight: ([\d.]+) ms, from ([\d.]+) s on", said)
        assert found, said
        return float(found[1]), 1000 * float(found[2])

    touch("touchStart", 150, 200)
    for step in range(1, 6):
        touch("touchMove", 150 - 20 * step, 200 + 20 * step)
    touch("touchEnd")
    # Earlier moves are shown, too.
    tab.wait_until(f"parseFloat({SEEN}.split(': ')[1]) < 210")
    width, first = in_sight()
    assert 150 < width < 300, "what was 50 pixels wide is 250"
    before = tab.text(SUMMARY)
    touch("touchStart", 100)
    for step in range(1, 6):
        touch("touchMove", 100 + 20 * step)
    touch("touchEnd")
    tab.wait_until(f"{SEEN} !== {before!r}")
    assert in_sight()[0] == width
    assert first - width / 2 < in_sight()[1] < first, "a third of the screen is panned"
    assert tab.complaints == []


def test_the_index_of_rows_finds_what_a_search_finds(new_tab, shown):
    tab = new_tab()
    tab.sign_in(shown.link)
    seed = random.randrange(1, 2**31)
    print(f"seed {seed}")
    check = (Path(__file__).parent / "row_index.js").read_text()
    assert tab.page.evaluate(check, seed) == 2 * 2 * 20 * (5 + 3)


AXE = os.environ.get("GT_TEST_AXE") or None


@pytest.mark.skipif(AXE is None, reason="SKIPPED: GT_TEST_AXE names no axe-core; make test-browser")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_a_timeline(new_tab, shown, scheme):
    tab = new_tab(color_scheme=scheme, bypass_csp=True)
    tab.sign_in(shown.link)
    record(tab, shown)
    tab.wait_until(f"{ROWS} > 0")
    tab.page.evaluate(Path(AXE).read_text())
    found = tab.page.evaluate("axe.run().then((of) => of.violations)")
    said = [(each["id"], [node["html"] for node in each["nodes"]]) for each in found]
    assert said == [], scheme
