"""docs/environment.md lists the variables that GT reads, and no others."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: A variable's name as a whole string, as it is passed to what reads the environment.
READ = re.compile(r"""["'](GT_[A-Z0-9_]+)["']""")

#: What is read, but not for users.
INTERNAL = {
    "GT_WRITE_SCREENS": "a test of `gt top` writes the screens that it compares with",
}


def read_by(folder: str, pattern: str) -> set[str]:
    """Return the variables that stand in the sources as strings, those of tests apart."""
    names: set[str] = set()
    for path in ROOT.glob(f"{folder}/{pattern}"):
        if path.name != "tests.rs" and "tests" not in path.parts:
            names.update(READ.findall(path.read_text()))
    return names


def test_the_page_lists_what_is_read():
    read = read_by("python/gt", "**/*.py") | read_by("crates", "*/src/**/*.rs")
    page = (ROOT / "docs" / "environment.md").read_text()
    listed = re.findall(r"`(GT_[A-Z0-9_]+)`", " ".join(re.findall(r"^\| (.*?) \|", page, re.M)))
    assert len(listed) == len(set(listed))
    assert read - INTERNAL.keys() == set(listed)
    assert INTERNAL.keys() <= read
