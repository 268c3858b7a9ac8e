"""Python environments for tests of what users install."""

import venv
from pathlib import Path


def environment(folder: Path, packages: list[str]) -> Path:
    """Create an environment that also finds the packages in other folders; return its Python."""
    venv.create(folder)
    (own,) = folder.glob("lib/python*/site-packages")
    (own / "folders.pth").write_text("\n".join(packages))
    return folder / "bin" / "python"
