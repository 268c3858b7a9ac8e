"""Run the tests and benchmarks for GPUs from a wheel, without a compiler or network.

    python tests/gpu/run.py --wheel dist/gt_tensor-*.whl --write docs/benchmarks.md

needs a machine with an NVIDIA GPU, Python 3.10 or newer, PyTorch, NumPy, and pytest for the tests.
Nothing is installed: the wheel is unpacked into a temporary folder. Without `--wheel` the newest
wheel in dist/ is used, or else the build in python/. Without a GPU the program prints a message and
does nothing; with `--standin` everything runs on the CPU instead, with tiny sizes.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent
NEEDED = {"torch": "PyTorch", "numpy": "NumPy"}


def loudly(text: str) -> None:
    """Print a conspicuous message to stderr."""
    line = "!" * 100
    print(f"{line}\n!! {text}\n{line}", file=sys.stderr, flush=True)


def missing(names: dict[str, str]) -> str:
    """Return the names of the packages that are not installed."""
    return ", ".join(names[name] for name in names if importlib.util.find_spec(name) is None)


def why_no_gpu() -> str:
    """Return why the tests cannot run on a GPU here, or "" if they can."""
    if lacking := missing(NEEDED):
        return f"{lacking} missing in {sys.executable}: `make gpu-tools` installs what is needed"
    import torch

    if not torch.cuda.is_available():
        built = f"PyTorch {torch.__version__}, built for CUDA {torch.version.cuda}"
        return f"PyTorch sees no GPU ({built}); `nvidia-smi` shows whether the driver answers"
    return ""


def package(wheel: Path | None, folder: str) -> Path:
    """Return the folder with GT: where a wheel was unpacked, or where it is built."""
    wheels = sorted(TOP.glob("dist/*.whl"), key=lambda path: path.stat().st_mtime)
    if wheel is None and wheels:
        wheel = wheels[-1]
    if wheel is not None:
        print(f"GT from {wheel}", flush=True)
        with zipfile.ZipFile(wheel) as file:
            file.extractall(folder)
        return Path(folder)
    if not list((TOP / "python" / "gt").glob("_gt.*")):
        sys.exit("no wheel in dist/, and no build in python/: pass --wheel")
    print(f"GT from {TOP / 'python'}", flush=True)
    return TOP / "python"


def main() -> int:
    """Run the tests and benchmarks; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--wheel", type=Path, help="GT as a wheel (default: the newest in dist/)")
    parser.add_argument("--write", type=Path, help="write the measurements into this page")
    parser.add_argument("--no-tests", action="store_true", help="only the benchmarks")
    parser.add_argument("--no-benches", action="store_true", help="only the tests")
    parser.add_argument("--standin", action="store_true", help="run on the CPU with tiny sizes")
    parser.add_argument("rest", nargs="*", help="further arguments for pytest, after --")
    args = parser.parse_args()
    environment = {**os.environ, "GT_BACKEND": ""}
    if args.standin:
        loudly("NO GPU is used: a stand-in on the CPU replaces it")
        environment["GT_GPU_STANDIN"] = "cpu"
    elif why := why_no_gpu():
        loudly(f"NO GPU: nothing was tested or measured. {why}")
        return 0
    statuses = []
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(package(args.wheel, folder)), os.environ.get("PYTHONPATH")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))

        def run(*command: object) -> None:
            full = [sys.executable, *map(str, command)]
            statuses.append(subprocess.run(full, env=environment, cwd=TOP).returncode)

        if not args.no_tests:
            if missing({"pytest": "pytest"}):
                loudly(f"NO TESTS: pytest is missing in {sys.executable} (`make gpu-tools`)")
                statuses.append(1)
            else:
                options = ["-p", "no:cacheprovider", "-c", HERE / "alone.ini", "-ra", "-q"]
                run("-m", "pytest", *options, HERE, *args.rest)
        if not args.no_benches:
            write = ["--write", args.write.resolve()] if args.write else []
            run(TOP / "benches" / "gpu.py", *write, *(["--tiny"] if args.standin else []))
    return max(statuses, default=0)


if __name__ == "__main__":
    sys.exit(main())
