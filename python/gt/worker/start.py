"""`python .../gt/worker/start.py`: `gt worker`, started in a quarter of the time.

It imports the modules that a worker with the native engine needs, and not the package, which
imports the whole API. Launchers use it: they start many workers on one machine.
"""

import os
import sys
from pathlib import Path
from types import ModuleType


def main() -> int:
    """Run a worker; return the exit status."""
    package = ModuleType("gt")
    package.__path__ = [str(Path(__file__).resolve().parents[1])]
    sys.modules["gt"] = package
    from gt import engines
    from gt.worker.__main__ import backend_of
    from gt.worker.__main__ import main as run

    try:
        engine = backend_of(sys.argv[1:]) or engines.default()
    except ValueError:
        return run()  # It reports this.
    if engine != "native":
        # Other engines use the API.
        os.execv(sys.executable, [sys.executable, "-m", "gt.worker", *sys.argv[1:]])
    return run()


if __name__ == "__main__":
    # Python may be set not to search the script's folder.
    if sys.path and os.path.realpath(sys.path[0]) == os.path.dirname(os.path.realpath(__file__)):
        sys.path.pop(0)
    sys.exit(main())
