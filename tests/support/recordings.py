"""Recordings of the web page, as browsers read them."""

import array
import json
import struct
import sys
import time
import urllib.request
from typing import Any, NamedTuple

from web_pages import LIMIT, WebPage, answer_to

#: The columns of spans and of moves, with the types of `array`.
SPANS = {"begin": "d", "end": "d", "bytes": "d", "id": "d", "kind": "I", "count": "I"}
MOVES = {"sent": "d", "received": "d", "size": "d", "from": "I", "to": "I"}


class Recording(NamedTuple):
    """What many spans share, and columns of numbers."""

    header: dict[str, Any]
    spans: dict[str, array.array]
    moves: dict[str, array.array]

    def names(self, part: str) -> set[str]:
        """Return the names of the spans on rows of a part."""
        rows = self.header["rows"]
        starts = [row["start"] for row in rows] + [self.header["spans"]]
        return {
            self.header["kinds"][self.spans["kind"][at]]["name"]
            for place, row in enumerate(rows)
            if row["part"] == part
            for at in range(starts[place], starts[place + 1])
        }


def decode(content: bytes) -> Recording:
    """Return the recording of an answer."""
    assert sys.byteorder == "little"
    (length,) = struct.unpack_from("<I", content)
    header = json.loads(content[4 : 4 + length])
    offset = 4 + length
    tables = []
    for columns, count in [(SPANS, header["spans"]), (MOVES, header["moves"])]:
        table = {}
        for name, kind in columns.items():
            table[name] = array.array(kind)
            end = offset + count * table[name].itemsize
            table[name].frombytes(content[offset:end])
            offset = end
        tables.append(table)
    assert offset == len(content)
    return Recording(header, *tables)


def start(page: WebPage, seconds: int, session: int | None = None) -> tuple[int, dict[str, Any]]:
    """Ask for a recording; return the status and the answer."""
    request = page.request("/recordings")
    request.add_header("Origin", page.base)
    request.add_header("Content-Type", "application/json")
    request.data = json.dumps({"seconds": seconds, "session": session}).encode()
    status, body = answer_to(request)
    return status, json.loads(body)


def wait_for(page: WebPage, number: int) -> dict[str, Any]:
    """Return what is said about a recording that has ended."""
    until = time.monotonic() + LIMIT
    while True:
        listed = json.loads(page.read("/recordings"))["recordings"]
        (own,) = (of for of in listed if of["number"] == number)
        if own["state"] != "recording":
            return own
        assert time.monotonic() < until, own
        time.sleep(0.05)


def fetch(page: WebPage, number: int) -> Recording:
    """Return a recording that is ready."""
    request = page.request(f"/recordings/{number}")
    with urllib.request.urlopen(request, timeout=LIMIT) as answer:
        return decode(answer.read())
