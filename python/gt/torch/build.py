"""`python -m gt.torch.build`: build the optional C++ extension of gt.torch."""

from __future__ import annotations

import subprocess
import sys


def main() -> int:
    """Build the extension, and print its path."""
    from gt.torch import extension

    try:
        made = extension.build()
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        print(f"gt.torch.build: {error}", file=sys.stderr)
        return 1
    print(f"built {made}; `import gt.torch` uses it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
