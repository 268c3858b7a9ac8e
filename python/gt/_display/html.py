"""HTML for notebooks: plain elements that inherit the page's colours, without scripts and links.

Texts may come from other users: they are escaped, and cut where they are long.
"""

from collections.abc import Iterable, Sequence
from itertools import islice

#: The number of rows that a table shows, and of characters of a cell and of a block of text.
ROWS = 100
CELL = 400
BLOCK = 50_000

_LEFT = ' style="text-align:left"'
_RIGHT = ' style="text-align:right;white-space:nowrap"'
_FITS = 'style="max-width:100%;height:auto"'


def page(*parts: str) -> str:
    """Return parts of HTML as one element.

    Its classes have Jupyter leave texts between dollars alone, which it would show as formulas.
    """
    return f'<div class="tex2jax_ignore mathjax_ignore">{"".join(parts)}</div>'


def text(value: str, limit: int = CELL) -> str:
    """Return a text escaped, and cut after `limit` characters.

    >>> text("<b>loss</b>")
    '&lt;b&gt;loss&lt;/b&gt;'
    """
    from html import escape  # it reads the names of all entities

    return escape(value if len(value) <= limit else f"{value[: limit - 1]}…")


def paragraph(value: str) -> str:
    """Return a text as a paragraph."""
    return f"<p>{text(value)}</p>"


def block(value: str) -> str:
    """Return a text of several lines as it is, in letters of one width."""
    return f"<pre>{text(value, BLOCK)}</pre>"


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], count: int, things: str = "rows"
) -> str:
    """Return a table.

    Args:
        head: the heads of the columns.
        rows: the cells of each row; of many, only the first rows are read.
        count: the number of rows.
        things: what the rows are, such as "sessions".
    """
    shown = [[*map(text, row)] for row in islice(rows, ROWS)]
    sides = [_side([row[place] for row in shown]) for place in range(len(head))]
    heads = zip(head, sides, strict=True)
    lines = ["".join(f'<th scope="col"{side}>{text(cell)}</th>' for cell, side in heads)]
    for row in shown:
        cells = zip(row, sides, strict=True)
        lines.append("".join(f"<td{side}>{cell}</td>" for cell, side in cells))
    first, *others = [f"<tr>{line}</tr>" for line in lines]
    whole = f"<table><thead>{first}</thead><tbody>{''.join(others)}</tbody></table>"
    if count <= len(shown):
        return whole
    return whole + paragraph(f"the first {len(shown):,} of {count:,} {things}")


def drawing(svg: str) -> str:
    """Return a picture of shapes, no wider than the page.

    Args:
        svg: a drawing of GT's own, in which texts are escaped.
    """
    return svg.replace("<svg ", f"<svg {_FITS} ", 1)


def image(png: bytes, what: str) -> str:
    """Return a picture of pixels, no wider than the page, and what it shows in words."""
    from base64 import b64encode

    source = f"data:image/png;base64,{b64encode(png).decode()}"
    return f'<img {_FITS} alt="{text(what)}" src="{source}">'


def _side(cells: list[str]) -> str:
    """Return the alignment of a column: numbers stand below each other."""
    known = [cell for cell in cells if cell != "-"]
    are_numbers = known and all(cell[:1].isdigit() for cell in known)
    return _RIGHT if are_numbers else _LEFT
