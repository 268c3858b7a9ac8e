"""`gt demo`, and the handwritten digits that it trains on: `gt.demo.load_digits`."""

from gt.demo.data import load_digits

__all__ = ["load_digits"]
