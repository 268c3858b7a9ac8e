"""MkDocs' hook: the API pages are made from the package as users see it."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: mkdocs.yml has the same folder as the path in which modules are found.
FOLDER = ROOT / "target" / "site"


def on_startup(command, dirty):
    """Write the package, with `gt.nn` where its name says and with the stubs' documentation."""
    generate = str(ROOT / "tools" / "docs" / "generate.py")
    subprocess.run([sys.executable, generate, "--site", str(FOLDER)], check=True)
