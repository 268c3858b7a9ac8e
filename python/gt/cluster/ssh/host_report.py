"""`python -m gt.cluster.ssh.host_report FOLDER`: make a cluster's folder here, and report.

It prints one line of JSON: the version of GT, how many GPUs there are, the folder's whole path, and
the address that a server publishes in it, if one serves there already.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import gt
from gt import _gt
from gt.cluster.devices import gpus


def main(folder: str) -> None:
    """Print the report."""
    path = Path(folder).expanduser().absolute()
    # Others cannot enter: a worker's log may quote a program.
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    (path / "logs").mkdir(mode=0o700, exist_ok=True)
    address = path / "address"
    is_used = address.exists() and _gt.is_listening(f"file://{address}")
    published = address.read_text().strip() if is_used else None
    print(
        json.dumps(
            {
                "version": gt.__version__,
                "gpus": len(gpus()),
                "folder": str(path),
                "published": published,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1])
