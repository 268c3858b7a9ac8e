"""Build the documentation site: `make site` runs this.

The pages of `docs` and the pages of the reference, which are generated from the package as users
see it, are collected in `target/site/docs`; Zensical makes the site of them, into `site`.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: zensical.toml has the same folder as the path in which modules are found.
FOLDER = ROOT / "target" / "site"


def collect_pages() -> None:
    """Write the package with its documentation, and all pages."""
    generate = ROOT / "tools" / "docs" / "generate.py"
    subprocess.run([sys.executable, generate, "--site", FOLDER], check=True)
    pages = FOLDER / "docs"
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(ROOT / "docs", pages, ignore=shutil.ignore_patterns("adr"))
    shutil.copytree(FOLDER / "pages", pages, dirs_exist_ok=True)


def missing_names() -> list[str]:
    """Return the public names that have no entry on the pages of the reference."""
    pages = (ROOT / "site" / "api").rglob("*.html")
    found = {each for page in pages for each in re.findall(r'id="(gt\.[^"]+)"', page.read_text())}
    needed = (line.split() for line in (FOLDER / "names.txt").read_text().splitlines())
    return [same[0] for same in needed if found.isdisjoint(same)]


def main() -> int:
    """Build the site; return the exit status."""
    collect_pages()
    program = str(Path(sys.executable).with_name("zensical"))
    command = [program, "build", "--strict", "--clean"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        print(done.stdout.decode(errors="replace"), file=sys.stderr)
        return 1
    if missing := missing_names():
        names = ", ".join(missing)
        print(f"the API reference lacks {len(missing)} names: {names}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
