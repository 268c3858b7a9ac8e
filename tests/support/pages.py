"""The pages of the documentation, and their blocks of code."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^( *)```(\w*)([^\n]*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
#: The first line of a block that is a file, rather than a part of the page's program.
FILE = re.compile(r"# (\w+\.py)\n")
#: The first line of a page whose blocks need a package.
NEEDS = re.compile(r"<!-- needs: (\w+) -->")


def body_of(block: re.Match[str]) -> str:
    """Return the code of a block without the indentation of the whole block."""
    return re.sub(rf"^{block[1]}", "", block[4], flags=re.MULTILINE)
