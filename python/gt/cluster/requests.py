"""Requests of `gt cluster` to the owner of a cluster, and its answers: files of the folder."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gt.cluster.errors import ClusterError
from gt.cluster.folder import write_text

_REQUEST, _ANSWER, _NOTES = "size.json", "size-answer.json", "notes.json"

#: How long an owner may take to answer, in seconds: a scheduler may answer late.
_ANSWER_WITHIN = 90.0


@dataclass(frozen=True)
class SizeRequest:
    """A request for a size; the token is that of its answer."""

    token: str
    size: int


def ask(folder: Path, size: int, is_owned: Callable[[], bool]) -> None:
    """Ask the owner for a size, and wait for its answer.

    Raises:
        ClusterError: it cannot be scaled, or the owner does not answer.
    """
    token = secrets.token_hex(8)
    write_text(folder / _REQUEST, json.dumps({"token": token, "size": size}))
    until = time.monotonic() + _ANSWER_WITHIN
    while True:
        # It may answer last of all.
        lives = is_owned()
        answer = _read(folder / _ANSWER)
        if isinstance(answer, dict) and answer.get("token") == token:
            if answer["error"]:
                raise ClusterError(answer["error"])
            return
        if not lives:
            raise ClusterError("the owner of the cluster has ended")
        if time.monotonic() > until:
            raise ClusterError(f"the owner did not answer within {_ANSWER_WITHIN:g} s")
        time.sleep(0.05)


def asked(folder: Path) -> SizeRequest | None:
    """Return the request that was made, if one was, and remove it."""
    found = _read(folder / _REQUEST)
    if found is None:
        return None
    (folder / _REQUEST).unlink(missing_ok=True)
    return SizeRequest(str(found["token"]), int(found["size"]))


def answer(folder: Path, request: SizeRequest, error: str) -> None:
    """Answer a request; an empty text is no error."""
    write_text(folder / _ANSWER, json.dumps({"token": request.token, "error": error}))


def write_notes(folder: Path, notes: list[str]) -> None:
    """Write the owner's notes of the cluster."""
    write_text(folder / _NOTES, json.dumps(notes))


def read_notes(folder: Path) -> list[str]:
    """Return the owner's notes of the cluster."""
    return [str(note) for note in _read(folder / _NOTES) or []]


def _read(path: Path) -> Any:
    """Return what is in a file; None if there is none."""
    try:
        found: Any = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return found
