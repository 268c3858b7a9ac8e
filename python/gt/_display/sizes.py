"""Numbers of bytes as texts."""


def size_text(count: float) -> str:
    """Return a number of bytes with a unit.

    >>> size_text(4_000_000)
    '4 MB'
    """
    for unit in ("B", "kB", "MB"):
        if count < 999.5:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"
