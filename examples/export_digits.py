"""Write examples/digits.csv for the Rust example: scikit-learn's handwritten digits.

Each line has 64 pixels from 0 to 16 and the digit. The lines are shuffled as train_digits.py
shuffles them, so that the first fifth is for testing in both.

python examples/export_digits.py [FILE]
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits


def main(argv=None):
    """Write the file that is named, or digits.csv beside this one."""
    names = sys.argv[1:] if argv is None else argv
    path = Path(names[0]) if names else Path(__file__).with_name("digits.csv")
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    lines = np.column_stack([digits.data, digits.target])[order].astype(int)
    np.savetxt(path, lines, fmt="%d", delimiter=",")
    print(f"{len(lines)} digits: {path}")


if __name__ == "__main__":
    main()
