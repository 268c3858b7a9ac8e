"""Loss curves drawn as text."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np


class Characters(NamedTuple):
    """The characters of a drawing: marks of each curve and of overlaps, and parts of the axes."""

    marks: str
    both: str
    tick: str
    axis: str
    corner: str
    line: str


UNICODE = Characters("○×", "●", "┤", "│", "└", "─")
ASCII = Characters("ox", "*", "+", "|", "+", "-")


def draw(
    curves: Mapping[str, Sequence[float]],
    width: int = 72,
    height: int = 9,
    characters: Characters = UNICODE,
) -> list[str]:
    """Return the lines of a drawing of one or two curves of the same length.

    The loss is on a logarithmic scale. Values that are not positive and finite are left out.

    Args:
        curves: the loss of each epoch, by the curve's name.
        width: the greatest length of a line.
        height: the number of lines between the lowest and the highest loss, both included.
        characters: the characters to draw with.
    """
    table = np.array(list(curves.values()), dtype=np.float64)
    epochs = table.shape[1]
    good = np.isfinite(table) & (table > 0)
    if not good.any():
        return ["(no loss that is positive and finite)"]
    lowest, highest = table[good].min(), table[good].max()
    labels = _labels(lowest, highest, height)
    margin = max(map(len, labels))
    columns = max(width - margin - 2, 2)

    at = np.linspace(0, epochs - 1, columns)
    span = np.log(highest / lowest)
    grid = [[" "] * columns for _ in range(height)]
    for curve, known, mark in zip(table, good, characters.marks, strict=False):
        if not known.any():
            continue
        places = np.flatnonzero(known)
        below = np.interp(at, places, np.log(highest / curve[known])) / (span or 1.0)
        rows = np.rint(below * (height - 1)).astype(int)
        for column, row in enumerate(rows):
            is_free = grid[row][column] == " "
            grid[row][column] = mark if is_free else characters.both

    lines = []
    for label, row in zip(labels, grid, strict=True):
        axis = characters.tick if label else characters.axis
        lines.append(f"{label:>{margin}} {axis}{''.join(row)}".rstrip())
    lines.append(" " * (margin + 1) + characters.corner + characters.line * columns)
    epoch_axis = "epoch 1"
    if epochs > 1:
        epoch_axis += str(epochs).rjust(columns - len(epoch_axis))
    lines.append(" " * (margin + 2) + epoch_axis)
    marks = zip(characters.marks, curves, strict=False)
    legend = [*marks, (characters.both, " and ".join(curves))]
    drawn = {mark for row in grid for mark in row}
    for mark, name in legend:
        if mark in drawn:
            lines += textwrap.wrap(f"{mark} {name}", width, subsequent_indent="  ")
    return lines


def _labels(lowest: float, highest: float, height: int) -> list[str]:
    """Return the label of each row from the top; the first, middle and last are losses."""
    labels = [""] * height
    for row in {0, (height - 1) // 2, height - 1} if lowest < highest else {0}:
        value = highest * (lowest / highest) ** (row / max(height - 1, 1))
        labels[row] = f"{value:.2g}"
    return labels
