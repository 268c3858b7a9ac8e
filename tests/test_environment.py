"""docs/environment.md lists the variables that GT reads, and no others."""

import re
from pathlib import Path

from gt._environment import VARIABLES

ROOT = Path(__file__).resolve().parent.parent
#: A string that is the name of a variable, as in calls that read the environment.
READ = re.compile(r"""["'](GT_[A-Z0-9_]+)["']""")

#: Variables that are read, but are not for users.
INTERNAL = {
    "GT_WRITE_SCREENS": "a test of `gt top` writes the screens that it compares with",
}


def read_by(folder: str, pattern: str) -> set[str]:
    """Return the variables that sources name in strings, tests excepted."""
    names: set[str] = set()
    for path in ROOT.glob(f"{folder}/{pattern}"):
        if path.name != "tests.rs" and "tests" not in path.parts:
            names.update(READ.findall(path.read_text()))
    return names


def test_the_page_lists_the_variables_that_are_read():
    read = read_by("python/gt", "**/*.py") | read_by("crates", "*/src/**/*.rs")
    page = (ROOT / "docs" / "environment.md").read_text()
    listed = re.findall(r"`(GT_[A-Z0-9_]+)`", " ".join(re.findall(r"^\| (.*?) \|", page, re.M)))
    assert len(listed) == len(set(listed))
    assert read - INTERNAL.keys() == set(listed)
    assert INTERNAL.keys() <= read
    assert set(VARIABLES) == set(listed)
