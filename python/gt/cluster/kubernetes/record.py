"""What another program needs to attach to a cluster in Kubernetes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gt.cluster.errors import ClusterError
from gt.cluster.folder import write_text
from gt.cluster.kubernetes.removal import Made

_NAME = "kubernetes.json"


@dataclass(frozen=True)
class Record:
    """How a cluster was described, and what was created; a file in its folder."""

    folder: Path
    arguments: dict[str, Any]
    made: Sequence[Made]

    @classmethod
    def read(cls, folder: Path) -> Record:
        """Return the record in a folder.

        Raises:
            ClusterError: there is none.
        """
        try:
            found = json.loads((folder / _NAME).read_text())
        except FileNotFoundError:
            raise ClusterError(
                f"the folder '{folder}' has no cluster in Kubernetes: start one with "
                "gt.cluster.Kubernetes(..., folder=..., keep=True)"
            ) from None
        return cls(folder, found["arguments"], [Made(*of) for of in found["made"]])

    def write(self) -> None:
        """Write it to the folder."""
        made = [[of.kind, of.name, of.uid] for of in self.made]
        text = json.dumps({"arguments": self.arguments, "made": made}, default=list)
        write_text(self.folder / _NAME, text)

    def remove(self) -> None:
        """Remove it from the folder."""
        (self.folder / _NAME).unlink(missing_ok=True)
