"""The handwritten digits in digits.csv; README.md names their source and licence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def load_digits(test: int = 359) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return 1,797 images of handwritten digits and their labels as NumPy arrays.

    They are part of the package, in a random order that is the same at every call.

        train_images, train_labels, test_images, test_labels = gt.demo.load_digits()

    Args:
        test: the number of images in the test set; one in five by default.

    Returns:
        The training set's images and labels, then the test set's: images as float32 (n, 64), 8
        rows of 8 pixels from 0 (white) to 1 (black), and labels as int64 (n,).

    Raises:
        ValueError: `test` is negative, or larger than 1,797.
    """
    import numpy as np

    table = np.loadtxt(Path(__file__).with_name("digits.csv"), dtype=np.int64, delimiter=",")
    if not 0 <= test <= len(table):
        raise ValueError(f"load_digits: test={test} given, expected 0 to {len(table)}")
    images = (table[:, :64] / 16).astype(np.float32)
    labels = table[:, 64].copy()
    return images[test:], labels[test:], images[:test], labels[:test]
