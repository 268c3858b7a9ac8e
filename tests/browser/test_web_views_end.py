"""Views that were left: nothing of them stays in the browser."""

from browsers import browser, needs_browser
from processes import cluster, embedded_only, one_engine_only, program
from web_pages import page_of_server

pytestmark = [needs_browser, embedded_only, one_engine_only]

#: Counts what views follow: observers of sizes, listeners at the window and at colour schemes, and
#: requests for a session's details.
COUNTS = """
  window.counts = { observers: 0, listeners: 0, asked: 0 };
  const counts = window.counts;
  window.ResizeObserver = class extends ResizeObserver {
    observe(of) { counts.observers += 1; super.observe(of); }
    disconnect() { counts.observers -= 1; super.disconnect(); }
  };
  for (const kind of [Window, MediaQueryList]) {
    const { addEventListener: add, removeEventListener: remove } = EventTarget.prototype;
    kind.prototype.addEventListener = function (name, call, options) {
      counts.listeners += 1;
      options?.signal?.addEventListener('abort', () => { counts.listeners -= 1; });
      add.call(this, name, call, options);
    };
    kind.prototype.removeEventListener = function (name, call, options) {
      counts.listeners -= 1;
      remove.call(this, name, call, options);
    };
  }
  const ask = window.fetch;
  window.fetch = (path, options) => {
    if (String(path).startsWith('/sessions/')) counts.asked += 1;
    return ask(path, options);
  };
"""

#: The views in turn: those with charts, one that asks for details, and that of recordings.
ROUND = ("mine", "sessions/1", "hour", "timeline", "workers")
ROUNDS = 10


def test_views_that_were_left_follow_nothing():
    with cluster(2, "--web", "0") as (address, processes), program(address), browser() as new_tab:
        shown = page_of_server(processes[0])
        tab = new_tab()
        tab.page.add_init_script(COUNTS)
        tab.sign_in(shown.link)

        def rounds(count: int) -> dict[str, int]:
            """Show all views some times; return what the last one follows."""
            for view in ROUND * count:
                tab.page.evaluate("to => { location.hash = to; }", f"#/{view}")
                tab.wait_until("document.querySelector('main h2') === document.activeElement")
                if view not in ("workers", "timeline"):
                    # A chart is drawn at the first update.
                    tab.wait_until("document.querySelector('main canvas')")
            return tab.page.evaluate("({ ...counts })")

        first = rounds(1)
        last = rounds(ROUNDS)
        assert first["asked"] > 0
        for name in ("observers", "listeners"):
            assert last[name] == first[name], (first, last)
        assert last["observers"] == 0, last
        # The details of a session are not asked for any more.
        tab.page.wait_for_timeout(2500)
        assert tab.page.evaluate("counts.asked") == last["asked"]
        tab.page.evaluate("location.hash = '#/mine'")
        tab.wait_until("counts.observers === 3")
        assert tab.complaints == []
