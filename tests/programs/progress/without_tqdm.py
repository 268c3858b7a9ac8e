"""Create a progress bar although tqdm is missing; print the error."""

import sys

sys.modules["tqdm"] = sys.modules["tqdm.auto"] = None
import gt  # noqa: E402

try:
    gt.progress([])
except ImportError as error:
    print(error)
