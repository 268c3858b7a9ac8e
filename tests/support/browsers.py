"""A browser without a window, which tests control: Debian's chromium, by Playwright."""

import importlib.util
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

#: The time limit for what a test waits for, in seconds.
LIMIT = 60.0

CHROMIUM = shutil.which("chromium")

needs_browser = pytest.mark.skipif(
    CHROMIUM is None or importlib.util.find_spec("playwright") is None,
    reason="SKIPPED: chromium or Playwright is missing; make test-browser installs them",
)

#: Where screenshots are kept, if this is set; a person should look at them.
SCREENSHOTS = os.environ.get("GT_TEST_SCREENSHOTS")


class Tab:
    """A tab of a browser, with what it has complained about."""

    def __init__(self, page: Any):
        self.page = page
        self.complaints: list[str] = []
        page.set_default_timeout(1000 * LIMIT)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", self._note)

    def _note(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def sign_in(self, link: str) -> None:
        """Open the link of a page, and wait until it shows a status."""
        self.page.goto(link)
        self.wait_for_status()
        # A browser notes the status 401 of the first answer, which is the form that signs it in.
        self.complaints = [each for each in self.complaints if "401" not in each]

    def wait_for_status(self) -> None:
        """Wait until the page itself shows a status."""
        self.page.wait_for_selector("#dispatcher")
        self.wait_until("document.querySelector('#dispatcher').textContent")

    def wait_until(self, expression: str) -> None:
        """Wait until an expression of JavaScript is true. The page's policy forbids the browser's
        own way, which evaluates text in the page."""
        until = time.monotonic() + LIMIT
        while not self.page.evaluate(expression):
            assert time.monotonic() < until, (expression, self.text())
            self.page.wait_for_timeout(50)

    def text(self, selector: str = "body") -> str:
        """Return the text that an element shows."""
        return str(self.page.inner_text(selector))

    def shot(self, name: str) -> None:
        """Keep a picture of the whole page, where `GT_TEST_SCREENSHOTS` says."""
        if SCREENSHOTS:
            path = Path(SCREENSHOTS) / f"{name}.png"
            self.page.screenshot(path=path, full_page=True)


@contextmanager
def browser() -> Iterator[Any]:
    """Yield a function that opens a tab of a fresh profile; its options are those of Playwright."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield lambda **options: Tab(chromium.new_context(**options).new_page())
        finally:
            chromium.close()
