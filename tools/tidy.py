"""Check what a formatter cannot: words, type names, lengths, circles, the map in ARCHITECTURE.md.

usage: tidy.py   Prints each finding with its place; exit status 1 if there is one.
"""

import json
import re
import subprocess
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from circles import circles

ROOT = Path(__file__).resolve().parent.parent

#: Words that comments and documents do not use, and what to write instead.
WORDS = {
    r"so many": "the number, or its name",
    r"told|tells?": "report, notify, raise: and name the recipient",
    r"nobody|somebody|everybody|whoever": "name the actor",
    r"made (?:again|anew)": "recomputed, restored, rebuilt",
    r"goes? on": "continue, resume",
    r"for the time being": "temporarily",
    r"what comes": "name what arrives",
    r"(?:is|are) there": "exist, be present",
    r"gang": "coscheduling",
    r"vault|shelf|shelved": "snapshot store",
    r"crew": "thread pool",
    r"spoils?": "invalidate",
    r"urged?": "boost",
    r"heeds?": "honour",
    r"take[sn]? up": "adopt, resume",
    r"settle in": "stabilize",
    r"look(?:s|ed)? through": "scan, prune",
    r"right of way": "priority",
    r"has come": "has arrived",
    r"keeps the device": "reserves the device",
}
ODD = re.compile(r"\b(" + "|".join(WORDS) + r")\b")

#: First words of docstrings that say less than "Return ...".
WEAK_DOCSTRING = re.compile(r"(Give|Say|Tell|Apply it)s?\b")

#: Names that several types may have: alternatives of which a platform compiles one, and the tensors
#: of the client and of an engine.
SHARED_NAMES = {"Listener", "OwnedBlock", "Tensor", "Wake"}

#: Files over 400 lines that are not split yet, with the most lines that they may have.
LONG_FILES: dict[str, int] = {
    "crates/gt-client/src/hotpath/iteration.rs": 441,
    "crates/gt-client/src/hotpath/mod.rs": 483,
    "crates/gt-dispatcher/src/planner/catalogue/mod.rs": 420,
    "crates/gt-engine-native/src/fold/order.rs": 420,
    "crates/gt-net/src/server.rs": 408,
    "crates/gt-python/src/engine/mod.rs": 425,
    "crates/gt/src/drivers/embedded/runtime.rs": 452,
}
#: Crates with modules that use each other in circles, and how many modules are in one.
CIRCULAR_MODULES = {
    "gt": 5,
    "gt-engine-native": 36,
    "gt-ir": 33,
    "gt-python": 19,
    "gt-sim": 7,
}
MOST_LINES = 400
MOST_MAP_WORDS = 2500

Finding = tuple[str, int, str]


def tracked(*patterns: str) -> list[str]:
    """Return the tracked files that match, without those of others and generated ones."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    skipped = re.compile(r"(third_party|fuzz|site)/|.*(\.pyi|/generated\.rs)$")
    return sorted({name for name in names.split() if not skipped.match(name) and exists(name)})


def exists(name: str) -> bool:
    """Return whether the file is in the working tree."""
    return (ROOT / name).is_file()


def text(name: str) -> str:
    """Return a file's text."""
    return (ROOT / name).read_text(encoding="utf-8")


def prose(name: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that are comments, docstrings or a document's text."""
    lines = text(name).splitlines()
    if name.endswith(".rs"):
        for number, line in enumerate(lines, 1):
            if match := re.match(r"\s*//[/!]?(.*)", line):
                yield number, match[1]
    elif name.endswith(".py"):
        with (ROOT / name).open("rb") as file:
            previous = None
            for token in tokenize.tokenize(file.readline):
                begins = previous in (None, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
                if token.type == tokenize.COMMENT:
                    yield token.start[0], token.string
                elif token.type == tokenize.STRING and begins:
                    yield from enumerate(token.string.splitlines(), token.start[0])
                if token.type not in (tokenize.NL, tokenize.COMMENT, tokenize.ENCODING):
                    previous = token.type
    else:
        yield from enumerate(lines, 1)


def odd_words() -> Iterator[Finding]:
    """Prose uses the words of the field."""
    for name in tracked("*.rs", "*.py", "*.md"):
        if name == "tools/tidy.py":
            continue
        for number, line in prose(name):
            for match in ODD.finditer(line):
                instead = next(to for word, to in WORDS.items() if re.fullmatch(word, match[0]))
                yield name, number, f"'{match[0]}': write {instead}"


def weak_docstrings() -> Iterator[Finding]:
    """A docstring begins with what is returned or done."""
    for name in tracked("*.py"):
        for number, line in prose(name):
            if match := re.match(r'\s*r?"""(.*)', line):
                if weak := WEAK_DOCSTRING.match(match[1]):
                    yield name, number, f"a docstring begins with '{weak[0]}': write 'Return ...'"


def type_names() -> Iterator[Finding]:
    """A type's name has one meaning in all crates."""
    places = defaultdict(list)
    declared = re.compile(r"(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait|union) (\w+)")
    for name in tracked("crates/*/src/*.rs"):
        for number, line in enumerate(text(name).splitlines(), 1):
            if (match := declared.match(line)) and match[1] not in SHARED_NAMES:
                places[match[1]].append((name, number))
    for type_name, found in places.items():
        if len({name for name, _ in found}) > 1:
            first, *others = found
            for name, number in others:
                yield name, number, f"'{type_name}' is also a type in {first[0]}:{first[1]}"


def lengths() -> Iterator[Finding]:
    """Files are short; those that are not yet may not grow."""
    for name in tracked("crates/*/src/*.rs", "python/*.py"):
        count, most = len(text(name).splitlines()), LONG_FILES.get(name, MOST_LINES)
        if count > most:
            yield name, count, f"{count} lines; at most {most}"
        elif name in LONG_FILES and count < most:
            yield name, count, f"{count} lines; LONG_FILES says {most}: lower it"
    for name in LONG_FILES:
        if not exists(name):
            yield "tools/tidy.py", 1, f"LONG_FILES names {name}, which does not exist"


def module_circles() -> Iterator[Finding]:
    """Modules do not use each other in circles; where they still do, no more join."""
    for crate in sorted(path.name for path in (ROOT / "crates").iterdir() if path.is_dir()):
        count = sum(map(len, circles(crate)))
        allowed = CIRCULAR_MODULES.get(crate, 0)
        if count > allowed:
            see = f"see python3 tools/circles.py {crate}"
            yield f"crates/{crate}", 1, f"{count} modules in circles; at most {allowed}: {see}"
        elif count < allowed:
            yield f"crates/{crate}", 1, f"{count} modules in circles: lower CIRCULAR_MODULES"


def map_of_crates() -> Iterator[Finding]:
    """The table of crates is what cargo knows, and the map is short."""
    name = "ARCHITECTURE.md"
    words = len(text(name).split())
    if words > MOST_MAP_WORDS:
        yield name, 1, f"{words} words; at most {MOST_MAP_WORDS}"
    command = ["cargo", "metadata", "--no-deps", "--offline", "--format-version", "1"]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    packages = json.loads(output)["packages"]
    ours = [each for each in packages if f"{ROOT}/crates/" in each["manifest_path"]]
    names = {package["name"] for package in ours}
    crates = {}
    for package in ours:
        normal = {each["name"] for each in package["dependencies"] if each["kind"] is None}
        crates[package["name"]] = normal & names
    rows = {}
    for number, line in enumerate(text(name).splitlines(), 1):
        if match := re.match(r"\| `(gt[\w-]*)` \| .* \| (.*?) ?\|$", line):
            rows[match[1]] = (number, set(re.findall(r"`([\w-]+)`", match[2])))
    for crate in crates.keys() - rows.keys():
        yield name, 1, f"crate {crate} is not in the table"
    for crate, (number, dependencies) in rows.items():
        if crate not in crates:
            yield name, number, f"there is no crate {crate}"
        elif dependencies != crates[crate]:
            yield name, number, f"{crate} depends on {', '.join(sorted(crates[crate])) or 'none'}"


def paths_in_documents() -> Iterator[Finding]:
    """A path of the source that the map or the table of invariants names exists."""
    for name in ("ARCHITECTURE.md", "docs/invariants.md"):
        crate = re.compile(r"`((?:gt-[\w-]+|crates|python|tests|tools|docs)/[\w./-]+?)/?`")
        for number, line in enumerate(text(name).splitlines(), 1):
            for match in crate.finditer(line):
                path = match[1]
                if not ((ROOT / path).exists() or (ROOT / "crates" / path).exists()):
                    yield name, number, f"{path} does not exist"


def main() -> int:
    """Print all findings and return the exit status."""
    checks = (
        odd_words,
        weak_docstrings,
        type_names,
        lengths,
        module_circles,
        map_of_crates,
        paths_in_documents,
    )
    findings = sorted(finding for check in checks for finding in check())
    for name, number, message in findings:
        print(f"{name}:{number}: {message}")
    if findings:
        print(f"{len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
