"""The details of a session in a browser: the numbers of its JSON, its plan, and hostile names."""

import json
import math
import os
from pathlib import Path

import pytest
from browsers import needs_browser
from processes import cluster, embedded_only, one_engine_only, program
from web_pages import page_of_server

pytestmark = [needs_browser, embedded_only, one_engine_only]

HOSTILE = "<img src=x onerror=alert(1)>"

#: The texts of the cells of each table, by its caption.
TABLES = """
  Object.fromEntries([...document.querySelectorAll('main table')].map((table) => [
    table.caption.textContent,
    [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.innerText.trim()))]))
"""

#: What the tables are to show of the details of a session.
EXPECTED = """
  async ({ stream, hot_paths, held }) => {
    const { bytes, number, percent } = await import('/words.js');
    const dims = (shape) => `(${shape.join(', ')}${shape.length === 1 ? ',' : ''})`;
    const listed = (texts) => texts.replaceAll(',', ', ') || '–';
    return {
      'Instructions': stream.map((of) => [of.operation, of.line || '–', of.signal || '–',
        number(of.count), percent(of.hot / of.count), bytes(of.bytes)]),
      'Hot paths': hot_paths.map((of) => [`#${of.number}`, listed(of.operations), listed(of.lines),
        number(of.steps), number(of.instructions), number(of.instructions / of.steps)]),
      'Largest tensors of the program': held.largest.map((of) => [of.variable || of.purpose || '–',
        of.line || '–', `${of.dtype} ${dims(of.shape)}`, bytes(of.bytes)]),
    };
  }
"""


#: Counts the requests for details: all, and at most at a time.
COUNTS = """
  window.counts = { asked: 0, now: 0, most: 0 };
  const { counts, fetch: ask } = window;
  window.fetch = async (path, options) => {
    if (!String(path).startsWith('/sessions/')) return ask(path, options);
    counts.asked += 1;
    counts.now += 1;
    counts.most = Math.max(counts.most, counts.now);
    try {
      return await ask(path, options);
    } finally {
      counts.now -= 1;
    }
  };
"""


@pytest.fixture(scope="module")
def shown():
    """A page with two workers, session 1 that trains, and session 2 with hostile names."""
    with (
        cluster(2, "--web", "0") as (address, processes),
        program(address, name="web/trains_sharded"),
        program(address, name="web/names_hostile"),
    ):
        yield page_of_server(processes[0])


def freeze(tab, session: int) -> list[dict]:
    """Have the page get the same details again and again, once the program has listed its tensors.

    Returns a list to which these details are added.
    """
    kept: list[dict] = []

    def answer(route) -> None:
        if kept:
            route.fulfill(json=kept[0])
            return
        given = route.fetch()
        details = json.loads(given.text())
        if given.ok and details["held"] and details["stream"]:
            kept.append(details)
        route.fulfill(response=given)

    tab.page.route(f"**/sessions/{session}", answer)
    return kept


def explain(tab) -> None:
    """Have the next step explained, and wait until it is shown."""
    tab.page.click("text=Explain its next step")
    tab.wait_until("document.querySelectorAll('.mesh g').length === 2")


def test_the_tables_have_the_numbers_of_the_details(new_tab, shown):
    tab = new_tab()
    tab.sign_in(shown.link)
    kept = freeze(tab, 1)
    tab.page.goto(f"{shown.base}/#/sessions/1")
    tab.wait_until("document.querySelectorAll('main table').length >= 4")
    until = "cache['batches'][0]"
    tab.page.wait_for_selector(f"td:has-text({json.dumps(until)})")
    (details,) = kept
    expected = tab.page.evaluate(EXPECTED, details)
    for caption, rows in expected.items():
        tab.wait_until(
            f"JSON.stringify(({TABLES})[{json.dumps(caption)}]) === "
            f"JSON.stringify({json.dumps(rows)})"
        )
    largest = expected["Largest tensors of the program"][0]
    assert largest[0] == until and largest[2:] == ["float32 (300, 300)", "360.0 KB"], largest
    assert len(expected["Instructions"]) > 10 and len(expected["Hot paths"]) == 1
    assert tab.complaints == []


def test_a_step_is_explained_with_a_picture(new_tab, shown):
    tab = new_tab()
    tab.page.add_init_script(COUNTS)
    tab.sign_in(shown.link)
    tab.page.goto(f"{shown.base}/#/sessions/1")
    explain(tab)
    plan = tab.page.evaluate(TABLES)["Plan"]
    (product, *_) = (at for at, row in enumerate(plan) if row[0] == "matmul")
    assert "Shard(0) on 0, 1" in plan[product][1], plan[product]
    show = tab.page.locator("button", has_text="Show")
    assert show.count() == len(plan)
    show.nth(product).click()
    tab.wait_until("/output of matmul: Shard/.test(document.querySelector('.mesh').ariaLabel)")
    heights = (
        "[...document.querySelectorAll('.mesh .block')].map((of) => of.getAttribute('height'))"
    )
    places = "[...document.querySelectorAll('.mesh .block')].map((of) => of.getAttribute('y'))"
    assert tab.page.evaluate(heights) == ["20", "20"], "each slot has half of it"
    assert tab.page.evaluate(places) == ["42", "62"], "one has the upper half"
    names = tab.page.locator(".mesh .name").all_text_contents()
    assert [name.split()[-1] for name in names] == ["w0", "w1"]
    whole = next(at for at, row in enumerate(plan) if "Replicate on 0, 1" in row[1])
    show.nth(whole).click()
    tab.wait_until("/: Replicate/.test(document.querySelector('.mesh').ariaLabel)")
    assert tab.page.evaluate(heights) == ["40", "40"], "each slot has all of it"
    # Pressed during a request, it does not begin a second series of requests.
    for _ in range(20):
        tab.page.click("text=Explain its next step")
    asked = tab.page.evaluate("counts.asked")
    tab.wait_until(f"counts.asked >= {asked + 3}")
    assert tab.page.evaluate("counts.most") == 1
    tab.shot("session-explained")
    assert tab.complaints == []


def test_what_workers_have_compiled_is_the_status(new_tab, shown):
    tab = new_tab()
    tab.sign_in(shown.link)
    tab.page.goto(f"{shown.base}/#/hot")

    def is_settled(name: str, data: dict) -> bool:
        return name == "status" and all(of["hot_paths"] for of in data["workers"])

    status = shown.wait_for("hot paths of both workers", is_settled)
    tab.wait_until("document.querySelectorAll('main table')[1].tBodies[0].rows.length === 2")
    tables = tab.page.evaluate(TABLES)
    sessions = tables["How much of what sessions issue is hot"]
    assert [row[0] for row in sessions] == [of["name"] for of in status["sessions"]]
    assert int(sessions[0][2].removesuffix(" %")) > 80, sessions
    workers = tables["What workers have compiled"]
    for row, of in zip(workers, status["workers"], strict=True):
        hot = of["hot_paths"]
        fixed = [of["name"], str(hot["sequences"]), str(hot["cache_size"]), str(hot["failures"])]
        assert [row[0], row[2], row[3], row[6]] == fixed, (row, of)
    programs = tables["The programs that ran the most operations"]
    known = [
        [of["name"], top["operations"], str(top["length"])]
        for of in status["workers"]
        for top in of["hot_paths"]["top"]
    ]
    assert sorted(row[:3] for row in programs) == sorted(known)
    tab.shot("hot-paths")
    assert tab.complaints == []


def test_hostile_names_of_variables_and_scopes_are_text(new_tab, shown):
    tab = new_tab()
    dialogs = []
    tab.page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    tab.sign_in(shown.link)
    tab.page.goto(f"{shown.base}/#/sessions/2")
    tab.wait_until(f"({TABLES})['Instructions']?.some((row) => row[2] === {json.dumps(HOSTILE)})")
    held = "Largest tensors of the program"
    variable = f"kept['{HOSTILE}"
    tab.wait_until(
        f"({TABLES})[{json.dumps(held)}].some(([of]) => of.startsWith({json.dumps(variable)}))"
    )
    explain(tab)
    assert HOSTILE in tab.text("main .name")
    found = "document.querySelectorAll('main img, main script, main [onerror]').length"
    assert (tab.page.evaluate(found), dialogs, tab.complaints) == (0, [], [])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_phones(new_tab, shown, scheme):
    tab = new_tab(viewport={"width": 360, "height": 740}, color_scheme=scheme)
    tab.sign_in(shown.link)
    for session in (2, 1):
        tab.page.goto(f"{shown.base}/#/sessions/{session}")
        explain(tab)
        scrolled, inner = tab.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert scrolled <= inner, session
        tab.shot(f"session-{session}-phone-{scheme}")
    assert tab.complaints == []


def enlarge(route) -> None:
    """Answer with details whose explanation has 72 slots, and a plan of 1,000 long steps."""
    given = route.fetch()
    details = json.loads(given.text())
    slots = range(72)
    placed = {"dtype": "float32", "shape": [7200, 16], "placement": "Shard(0)", "slots": [*slots]}
    whole = {**placed, "placement": "Replicate"}
    output = {**placed, "mesh": [72], "shards": [{"axis": 0, "cuts": [*range(0, 7201, 100)]}]}
    move = {"collective": "all_gather", "bytes": 460800, "from": placed, "to": whole}
    step = {
        "operation": "matmul",
        "output": output,
        "line": f"{'deep/' * 30}train.py:1234",
        "moves": [{**move, "reason": "'matmul' needs operand 2 replicated"}],
    }
    details["explained"] = {
        "at": 1,
        "cut": True,
        "slots": [{"slot": at, "worker": f"w{at}", "machine": f"n{at}" * 8} for at in slots],
        "memory": [{"slot": at, "bytes": 10**at % 10**15} for at in slots],
        "steps": [step] * 1000,
        "slow_links": [],
    }
    route.fulfill(json=details)


#: Tensors on meshes, and the part that each slot has as the picture draws it.
PARTS = {
    "uneven": (
        [4],
        [6],
        [(0, [0, 2, 4, 5, 6])],
        "0 0 1 .33, 0 .33 1 .33, 0 .67 1 .17, 0 .83 1 .17",
    ),
    "grid": (
        [2, 2],
        [8, 10],
        [(0, [0, 4, 8]), (1, [0, 7, 10])],
        "0 0 .7 .5, .7 0 .3 .5, 0 .5 .7 .5, .7 .5 .3 .5",
    ),
    "copies": (
        [2, 2],
        [8, 10],
        [None, (0, [0, 6, 8])],
        "0 0 1 .75, 0 .75 1 .25, 0 0 1 .75, 0 .75 1 .25",
    ),
    "inner axis": (
        [2, 2],
        [4, 4, 3],
        [(1, [0, 1, 4]), (0, [0, 2, 4])],
        "0 0 1 .13, 0 .5 1 .13, 0 .13 1 .38, 0 .63 1 .38",
    ),
    "short": ([3], [2, 5], [(0, [0, 1, 2, 2])], "0 0 1 .5, 0 .5 1 .5, nothing"),
    "empty": ([2], [0], [(0, [0, 0, 0])], "nothing, nothing"),
}


@pytest.mark.parametrize(("mesh", "shape", "shards", "parts"), PARTS.values(), ids=PARTS)
def test_the_parts_of_a_mesh_are_drawn(new_tab, shown, mesh, shape, shards, parts):
    tab = new_tab()
    tab.sign_in(shown.link)
    slots = [*range(math.prod(mesh))]
    of_axes = [shard and {"axis": shard[0], "cuts": shard[1]} for shard in shards]
    placed = {"mesh": mesh, "shape": shape, "shards": of_axes, "slots": slots}
    find = """
      async (placed) => {
        const { part } = await import('/mesh.js');
        return [...placed.slots, -1].map((slot) => part(placed, slot));
      }
    """
    *found, nothing = tab.page.evaluate(find, placed)
    assert nothing is None
    for of, expected in zip(found, parts.split(", "), strict=True):
        if expected == "nothing":
            assert of is None
            continue
        drawn = [of["x"], of["y"], of["width"], of["height"]]
        assert drawn == pytest.approx([float(text) for text in expected.split()], abs=0.01)


@pytest.mark.parametrize("width", [360, 1280])
def test_many_slots_and_a_long_plan_fit(new_tab, shown, width):
    tab = new_tab(viewport={"width": width, "height": 800})
    tab.sign_in(shown.link)
    tab.page.route("**/sessions/1*", enlarge)
    tab.page.goto(f"{shown.base}/#/sessions/1")
    tab.wait_until("document.querySelectorAll('.mesh g').length === 72")
    tab.wait_until("document.querySelectorAll('.scrolls tbody tr').length === 1000")
    size = "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
    across, down = tab.page.evaluate(size)
    assert across <= width and down < 10_000, (across, down)
    assert "Shard(0) on 0–71." in tab.text(".drawn >> xpath=..")
    box = tab.page.locator(".mesh").bounding_box()
    assert box["width"] <= width, box
    tab.shot(f"session-large-{width}")
    # Another width of the window has another number of slots in a row.
    tab.page.set_viewport_size({"width": 700, "height": 800})
    tab.wait_until("document.querySelector('.mesh').clientWidth > 600")
    assert tab.complaints == []


AXE = os.environ.get("GT_TEST_AXE") or None


@pytest.mark.skipif(AXE is None, reason="SKIPPED: GT_TEST_AXE names no axe-core; make test-browser")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_an_explained_session(new_tab, shown, scheme):
    tab = new_tab(color_scheme=scheme, bypass_csp=True)
    tab.sign_in(shown.link)
    for session in (2, 1):
        tab.page.goto(f"{shown.base}/#/sessions/{session}")
        explain(tab)
        tab.page.evaluate(Path(AXE).read_text())
        found = tab.page.evaluate("axe.run().then((of) => of.violations)")
        said = [(each["id"], [node["html"] for node in each["nodes"]]) for each in found]
        assert said == [], (session, scheme)
