"""Circles among the modules of a crate: modules that use each other, directly or through others.

    python3 tools/circles.py gt-dispatcher gt-worker

prints the modules of each circle, with those of the circle that each one uses. Folders count as one
module (`planner`), and the files of a folder are compared with each other (`planner::plan`).
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

Graph = dict[str, set[str]]


def modules(crate: str) -> dict[str, str]:
    """Return the source of each module of a crate, without its tests, by the module's path."""
    folder = ROOT / "crates" / crate / "src"
    found = {}
    for file in folder.rglob("*.rs"):
        parts = list(file.relative_to(folder).with_suffix("").parts)
        if parts[-1] == "mod":
            parts.pop()
        if parts not in (["lib"], ["main"]) and parts[-1] != "tests":
            source = file.read_text(encoding="utf-8").split("#[cfg(test)]\nmod tests")[0]
            found["::".join(parts)] = source
    return found


def imports(source: str) -> Iterator[str]:
    """Yield the paths that a module's `use` declarations and inline paths name."""
    for match in re.finditer(r"\buse\s+((?:crate|super|self)\b[^;]*);", source):
        yield from flat(match[1])
    yield from re.findall(r"\bcrate::[a-z_:]+", source)


def flat(tree: str) -> Iterator[str]:
    """Yield the paths of a `use` tree, such as `a::{b, c::d}`."""
    prefix, brace, rest = tree.strip().partition("{")
    if not brace:
        yield re.sub(r"\s+as\s.*", "", prefix)
        return
    depth, part = 0, ""
    for letter in rest[: rest.rindex("}")] + ",":
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter != "," or depth:
            part += letter
            continue
        if part.strip():
            yield from flat(prefix + part.strip())
        part = ""


def absolute(module: str, path: str) -> str:
    """Return a path from the crate's root."""
    parts = path.split("::")
    base = module.split("::")
    if parts[0] == "crate":
        return "::".join(parts[1:])
    if parts[0] == "self":
        return "::".join(base + parts[1:])
    while parts[0] == "super":
        parts, base = parts[1:], base[:-1]
    return "::".join(base + parts)


def graphs(crate: str) -> Iterator[Graph]:
    """Yield which modules use which: the folders of the crate, and the files of each folder."""
    sources = modules(crate)
    uses: list[tuple[str, str]] = []
    for module, source in sources.items():
        for path in imports(source):
            parts = absolute(module, path).split("::")
            known = ("::".join(parts[:end]) for end in range(len(parts), 0, -1))
            if used := next((name for name in known if name in sources), None):
                uses.append((module, used))
    # A folder uses its own files, which may use the folder's types: only what is beside counts.
    for folder in sorted({"", *(name.rpartition("::")[0] for name in sources)}):
        graph: Graph = {}
        for module, used in uses:
            ends = beside(folder, module), beside(folder, used)
            if ends[0] and ends[1] and ends[0] != ends[1]:
                graph.setdefault(ends[0], set()).add(ends[1])
        yield graph


def beside(folder: str, module: str) -> str:
    """Return the module of a folder that a module is or is in; empty if it is elsewhere."""
    prefix = folder + "::" if folder else ""
    inside = module.startswith(prefix)
    return prefix + module[len(prefix) :].partition("::")[0] if inside else ""


def circles(crate: str) -> list[Graph]:
    """Return the circles of a crate: the modules of each, and which others of it they use."""
    found = []
    for graph in graphs(crate):
        reached = {module: reach(graph, module) for module in graph}
        left = {module for module in graph if module in reached[module]}
        while left:
            first = min(left)
            circle = {other for other in left & reached[first] if first in reached[other]}
            found.append({module: graph[module] & circle for module in sorted(circle)})
            left -= circle
    return found


def reach(graph: Graph, module: str) -> set[str]:
    """Return the modules that a module uses, directly or through others."""
    found: set[str] = set()
    todo = [module]
    while todo:
        new = graph.get(todo.pop(), set()) - found
        found |= new
        todo += new
    return found


def main() -> None:
    """Print the circles of the crates that are named."""
    for crate in sys.argv[1:]:
        all_circles = circles(crate)
        print(f"{crate}: {sum(map(len, all_circles))} modules in {len(all_circles)} circles")
        for circle in all_circles:
            for module, used in circle.items():
                print(f"    {module} uses {', '.join(sorted(used))}")


if __name__ == "__main__":
    main()
