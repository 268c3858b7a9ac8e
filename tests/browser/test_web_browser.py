"""The web page in a browser: what it shows, updates, and does with hostile names."""

import os
import re
from pathlib import Path

import pytest
from browsers import needs_browser
from processes import cluster, embedded_only, one_engine_only, program, start_program
from web_pages import page_of_server

pytestmark = [needs_browser, embedded_only, one_engine_only]

#: Names that would run a script or change the page if they were markup.
HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "<script>document.title = 'x'</script>",
    '"><a href=javascript:alert(1)>x',
    "'; DROP TABLE sessions; --",
    "&lt;b&gt; {{7*7}} ${7*7}",
]

VIEWS = (
    "mine",
    "workers",
    "sessions",
    "users",
    "published",
    "hot",
    "moves",
    "failures",
    "hour",
    "timeline",
)


@pytest.fixture(scope="module")
def shown():
    """A page with two workers, a session that computes and idle ones with hostile names."""
    with cluster(2, "--web", "0") as (address, processes), program(address):
        clients = [start_program("web/answers_its_status", address, name) for name in HOSTILE]
        try:
            for client in clients:
                assert client.stdout.readline() == "at work\n"
            yield page_of_server(processes[0])
        finally:
            for client in clients:
                client.kill()
                client.communicate()


def test_views_show_the_numbers_of_the_status_and_nothing_goes_wrong(new_tab, shown):
    tab = new_tab()
    tab.sign_in(shown.link)
    assert tab.page.url == f"{shown.base}/", "the token is not in the address any more"
    assert tab.page.evaluate("document.cookie") == ""
    status = shown.wait_for("a status", lambda name, _: name == "status")
    for view in VIEWS:
        tab.page.goto(f"{shown.base}/#/{view}")
        tab.page.wait_for_selector("main h2")
        tab.page.wait_for_selector("main table:not([hidden]), main .none:not([hidden])")
        tab.shot(view)
    tab.page.goto(f"{shown.base}/#/workers")
    rows = tab.page.locator("tbody tr")
    assert [rows.nth(at).locator("td").first.inner_text() for at in (0, 1)] == ["w0", "w1"]
    tab.page.goto(f"{shown.base}/#/sessions")
    tab.page.wait_for_selector("tbody tr")
    names = tab.page.locator("tbody tr td:first-child a").all_inner_texts()
    assert sorted(names) == sorted(session["name"] for session in status["sessions"])
    # The charts are drawn, and their captions say what they show.
    tab.page.goto(f"{shown.base}/#/mine")
    tab.page.wait_for_selector("canvas")
    tab.wait_until("/now [1-9]/.test(document.querySelector('.summary').textContent)")
    assert tab.complaints == []


def test_hostile_names_are_text(new_tab, shown):
    tab = new_tab()
    dialogs = []
    tab.page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    tab.sign_in(shown.link)
    for view in ("published", "mine", "sessions"):
        tab.page.goto(f"{shown.base}/#/{view}")
        tab.page.wait_for_selector("tbody tr")
        text = tab.text("main")
        for name in HOSTILE:
            assert name in text, (view, name)
    found = tab.page.evaluate(
        "document.querySelectorAll('main img, main script, a[href^=javascript]').length"
    )
    assert (found, dialogs, tab.complaints) == (0, [], [])
    row = tab.page.locator("tbody tr", has_text=HOSTILE[0])
    row.locator("a").click()
    tab.wait_until("location.hash.startsWith('#/sessions/')")
    assert HOSTILE[0] in tab.text("main .name")
    tab.shot("session")
    assert tab.complaints == []


def test_it_works_by_keyboard_on_phones_and_in_the_dark(new_tab, shown):
    phone = new_tab(viewport={"width": 360, "height": 740}, color_scheme="dark")
    phone.sign_in(shown.link)
    for view in VIEWS:
        phone.page.goto(f"{shown.base}/#/{view}")
        phone.page.wait_for_selector("main h2")
        phone.page.wait_for_timeout(700)
        widths = "[document.documentElement.scrollWidth, innerWidth]"
        scrolled, inner = phone.page.evaluate(widths)
        assert scrolled <= inner, view
        phone.shot(f"phone-{view}")
    desk = new_tab()
    desk.sign_in(shown.link)
    desk.page.keyboard.press("Tab")
    assert desk.page.evaluate("document.activeElement.id") == "skip"
    for view in VIEWS:
        desk.page.keyboard.press("Tab")
        assert desk.page.evaluate("location.hash || '#/mine'")
        assert desk.page.evaluate("document.activeElement.getAttribute('href')") == f"#/{view}"
    desk.page.keyboard.press("Enter")
    desk.wait_until("document.activeElement.textContent === 'Timeline'")
    assert phone.complaints + desk.complaints == []


AXE = os.environ.get("GT_TEST_AXE") or None


@pytest.mark.skipif(AXE is None, reason="SKIPPED: GT_TEST_AXE names no axe-core; make test-browser")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(new_tab, shown, scheme):
    # The page's own policy lets no other script in.
    tab = new_tab(color_scheme=scheme, bypass_csp=True)
    tab.sign_in(shown.link)
    status = shown.wait_for("a session", lambda _, data: bool(data.get("sessions")))
    for view in (*VIEWS, f"sessions/{status['sessions'][0]['number']}", "sessions/999"):
        tab.page.goto(f"{shown.base}/#/{view}")
        tab.page.wait_for_selector("main h2")
        tab.page.wait_for_timeout(700)
        tab.page.evaluate(Path(AXE).read_text())
        found = tab.page.evaluate("axe.run().then((of) => of.violations)")
        said = [(each["id"], [node["html"] for node in each["nodes"]]) for each in found]
        assert said == [], (view, scheme)


def test_a_stranger_sees_a_form_that_signs_in_with_the_token_alone(new_tab, shown):
    tab = new_tab()
    tab.page.goto(shown.base)
    assert "Sign in" in tab.text() and not re.search(r"\bw0\b|\bgt\b", tab.text().lower())
    tab.shot("sign-in")
    tab.page.fill("#token", "0" * 32)
    tab.page.keyboard.press("Enter")
    tab.wait_until("/not valid/.test(document.body.innerText)")
    tab.page.fill("#token", shown.token)
    tab.page.keyboard.press("Enter")
    tab.wait_for_status()


def test_a_link_signs_in_where_the_page_is_open_already(new_tab, shown):
    tab = new_tab()
    tab.page.goto(shown.base)
    tab.page.wait_for_selector("#token")
    with tab.page.expect_event("load"):
        tab.page.evaluate("to => { location.href = to; }", shown.link)
    tab.wait_for_status()
    # The page of someone who is signed out meanwhile is loaded anew.
    tab.page.context.clear_cookies()
    with tab.page.expect_event("load"):
        tab.page.evaluate("to => { location.href = to; }", shown.link)
    tab.wait_for_status()
    assert tab.page.url == f"{shown.base}/"


def test_a_killed_worker_and_a_lost_server_are_shown(new_tab):
    with cluster(2, "--web", "0") as (_, processes):
        page = page_of_server(processes[0])
        tab = new_tab()
        tab.sign_in(page.link)
        tab.page.goto(f"{page.base}/#/workers")
        tab.wait_until("document.querySelectorAll('tbody tr').length === 2")
        processes[2].kill()
        tab.wait_until("document.querySelectorAll('tbody tr').length === 1")
        assert tab.complaints == []
        processes[0].kill()
        tab.wait_until("/No contact/.test(document.body.innerText)")
        assert "w0" in tab.text("main"), "what was last known stays"
        tab.shot("lost")
