"""Actions by the web page in a browser: asked twice, by keyboard, and for operators alone."""

import os
from contextlib import contextmanager
from pathlib import Path

import pytest
from browsers import needs_browser
from processes import cluster, embedded_only, one_engine_only, start_program
from web_pages import WebPage, acting_link_of_server, page_of_server

pytestmark = [needs_browser, embedded_only, one_engine_only]

IS_ASKING = "document.querySelector('dialog').open"
SHOWN_BUTTONS = "[...document.querySelectorAll('.act button')].filter((of) => of.checkVisibility())"
SAID = "document.querySelector('#outcome p').textContent"
DOUBLE_CLICK = """
const yes = document.querySelector('dialog [type=submit]'); yes.click(); yes.click();
"""

#: The second question takes no answer earlier, in milliseconds.
PAUSE = 700


@contextmanager
def acting_page(workers: int):
    """Yield a page, the link of its operators, and the processes; a program computes."""
    with cluster(workers, "--web", "0", "--web-actions") as (address, processes):
        page = page_of_server(processes[0])
        link = acting_link_of_server(processes[0])
        client = start_program("watching/loop", address)
        try:
            assert client.stdout.readline() == "at work\n"
            yield page, link, processes
        finally:
            client.kill()
            client.communicate()


def only_session(page: WebPage) -> dict:
    """Return the session of the program."""
    return page.wait_for("a session", lambda _, data: bool(data.get("sessions")))["sessions"][0]


def waits_for(page: WebPage, what: str) -> None:
    """Wait until the session of the program waits for something."""
    page.wait_for(what, lambda _, data: data["sessions"][0]["waits_for"].startswith(what))


def test_pause_asks_twice_by_keyboard_and_pauses(new_tab):
    with acting_page(1) as (page, link, _):
        session = only_session(page)
        tab = new_tab()
        tab.sign_in(link)
        assert tab.page.url == f"{page.base}/", "the token is not in the address any more"
        assert tab.page.evaluate("document.cookie") == ""
        tab.page.goto(f"{page.base}/#/sessions/{session['number']}")
        tab.wait_until(f"{SHOWN_BUTTONS}.length === 4")
        keyboard = tab.page.keyboard

        tab.page.focus("text=Pause")
        keyboard.press("Enter")
        tab.wait_until(IS_ASKING)
        asked = tab.text("dialog")
        assert "Pause the session?" in asked and session["name"] in asked, asked
        assert "its program waits until the session is resumed" in asked
        tab.shot("ask")
        keyboard.press("Escape")
        assert not tab.page.evaluate(IS_ASKING)
        assert tab.page.evaluate("document.activeElement.textContent") == "Pause"

        # The same key, pressed again and again, never answers both questions.
        keyboard.press("Enter")
        keyboard.press("Enter")
        assert not tab.page.evaluate(IS_ASKING)
        keyboard.press("Enter")
        keyboard.press("Tab")
        keyboard.press("Enter")
        assert "Is this what you mean?" in tab.text("dialog")
        assert tab.page.evaluate("document.activeElement.id") == "ask-title"
        for _ in range(3):
            keyboard.press("Enter")
        assert "Is this what you mean?" in tab.text("dialog"), "its title takes no key"
        keyboard.press("Tab")
        keyboard.press("Enter")
        assert not tab.page.evaluate(IS_ASKING), "Cancel comes first"
        assert tab.page.evaluate(SAID) == ""

        keyboard.press("Enter")
        keyboard.press("Tab")
        keyboard.press("Enter")
        keyboard.press("Tab")
        keyboard.press("Tab")
        assert tab.page.evaluate("document.activeElement.textContent") == "Yes, pause the session"
        tab.shot("ask-again")
        tab.page.wait_for_timeout(PAUSE)
        keyboard.press("Enter")
        tab.wait_until(f"{SAID}.startsWith('paused ')")
        assert tab.page.evaluate(SAID) == f"paused {session['name']}"
        waits_for(page, "its resumption: it is paused")
        tab.wait_until("/its resumption: it is paused/.test(document.body.innerText)")
        tab.shot("paused")

        tab.page.click("text=Resume")
        tab.page.evaluate(DOUBLE_CLICK)
        assert "Is this what you mean?" in tab.text("dialog"), "a double click answers once"
        tab.page.wait_for_timeout(PAUSE)
        tab.page.click("dialog button[type=submit]")
        tab.wait_until(f"{SAID}.startsWith('resumed ')")
        tab.page.click("text=Dismiss")
        assert tab.page.evaluate(SAID) == ""
        page.wait_for("a rate", lambda _, data: data["sessions"][0]["rate"] > 0)
        assert tab.complaints == []


def test_watchers_have_no_buttons_until_they_open_the_other_link(new_tab):
    with acting_page(2) as (page, link, processes):
        tab = new_tab()
        tab.sign_in(page.link)
        tab.page.goto(f"{page.base}/#/workers")
        tab.wait_until("document.querySelectorAll('tbody tr').length === 2")
        assert tab.page.evaluate(f"{SHOWN_BUTTONS}.length") == 0
        with tab.page.expect_event("load"):
            tab.page.goto(link)
        tab.wait_until("document.body.classList.contains('acts')")
        assert tab.page.url == f"{page.base}/"
        tab.page.goto(f"{page.base}/#/workers")
        tab.wait_until(f"{SHOWN_BUTTONS}.length === 2")
        tab.shot("workers-with-actions")
        tab.page.click("[aria-label='Drain w0']")
        assert tab.page.evaluate("document.activeElement.id") == "ask-field"
        tab.page.fill("#ask-field", "40")
        tab.page.keyboard.press("Enter")
        assert "Drain the worker: w0 (seconds: 40)" in tab.text("dialog")
        tab.page.wait_for_timeout(PAUSE)
        tab.page.click("dialog button[type=submit]")
        tab.wait_until(f"{SAID}.startsWith(\"the worker 'w0' is drained\")")
        assert processes[1].wait(timeout=30) == 0
        tab.wait_until("document.querySelectorAll('tbody tr').length === 1")
        assert tab.complaints == []


AXE = os.environ.get("GT_TEST_AXE") or None


@pytest.mark.skipif(AXE is None, reason="SKIPPED: GT_TEST_AXE names no axe-core; make test-browser")
def test_axe_finds_nothing_where_an_operator_is_asked(new_tab):
    with acting_page(1) as (page, link, _):
        session = only_session(page)
        for scheme in ("light", "dark"):
            tab = new_tab(
                color_scheme=scheme, bypass_csp=True, viewport={"width": 360, "height": 740}
            )
            tab.sign_in(link)
            for view, button in [(f"sessions/{session['number']}", "Pause"), ("workers", "Drain")]:
                tab.page.goto(f"{page.base}/#/{view}")
                tab.page.click(f"text={button}")
                widths = "[document.documentElement.scrollWidth, innerWidth]"
                scrolled, inner = tab.page.evaluate(widths)
                assert scrolled <= inner, view
                tab.page.evaluate(Path(AXE).read_text())
                found = tab.page.evaluate("axe.run().then((of) => of.violations)")
                said = [(each["id"], [node["html"] for node in each["nodes"]]) for each in found]
                assert said == [], (view, scheme)
                tab.shot(f"ask-{button}-{scheme}")
                tab.page.keyboard.press("Escape")
