"""Hold the lock of a build. Arguments: the folder of build_package.py, and the checkout."""

import pathlib
import sys

sys.path.insert(0, sys.argv[1])
import build_package as build  # noqa: E402

build.ROOT = pathlib.Path(sys.argv[2])
held = build.lock()
print("held", flush=True)
sys.stdin.read()
