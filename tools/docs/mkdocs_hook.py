"""MkDocs' hook: the API reference is made from the package as users see it."""

import re
import subprocess
import sys
from pathlib import Path

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]

#: mkdocs.yml has the same folder as the path in which modules are found.
FOLDER = ROOT / "target" / "site"


def on_startup(command, dirty):
    """Write the package, with `gt.nn` where its name says and with the stubs' documentation."""
    generate = str(ROOT / "tools" / "docs" / "generate.py")
    subprocess.run([sys.executable, generate, "--site", str(FOLDER)], check=True)


def on_files(files, config):
    """Add the generated pages."""
    folder = FOLDER / "pages"
    for path in sorted(folder.rglob("*.md")):
        name = path.relative_to(folder).as_posix()
        files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown, page, config, files):
    """Let the search list guides before pages that look things up.

    A word in a title counts a thousand times as much as in a text, and each name of the reference
    is a title. With this boost a guide that mentions `sparse` comes before `gt.nn.init.sparse_`,
    and `gt.optim.SGD` before guides that mention `SGD`.
    """
    is_guide = not any(section.title in ("Comparison", "Reference") for section in page.ancestors)
    page.meta.setdefault("search", {"boost": 700 if is_guide else 1})


def on_post_build(config):
    """Raise if a public name has no entry on the pages of the reference."""
    pages = Path(config.site_dir, "api").rglob("*.html")
    found = {each for page in pages for each in re.findall(r'id="(gt\.[^"]+)"', page.read_text())}
    needed = (line.split() for line in (FOLDER / "names.txt").read_text().splitlines())
    missing = [same[0] for same in needed if found.isdisjoint(same)]
    if missing:
        raise PluginError(f"the API reference lacks {len(missing)} names: {', '.join(missing)}")
