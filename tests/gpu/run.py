"""Run the tests and benchmarks for GPUs in one go, from a wheel alone: no compiler, no network.

    python tests/gpu/run.py --wheel dist/gt_tensor-*.whl --write docs/benchmarks.md

needs a machine with an NVIDIA GPU, Python 3.10 or newer, PyTorch, NumPy, and pytest for the tests.
Nothing is installed: the wheel is unpacked into a folder that is gone afterwards. Without `--wheel`
the newest one in dist/ is taken, or else what is built in python/. Where there is no GPU, this says
so and does nothing; with `--standin` everything runs on the processor instead, with tiny sizes.
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
    """Say what nobody should miss."""
    line = "!" * 100
    print(f"{line}\n!! {text}\n{line}", file=sys.stderr, flush=True)


def missing(names: dict[str, str]) -> str:
    """Name the packages that are not installed."""
    return ", ".join(names[name] for name in names if importlib.util.find_spec(name) is None)


def why_no_gpu() -> str:
    """Say why the tests cannot run on a GPU here, or nothing."""
    if lacking := missing(NEEDED):
        return f"{lacking} missing in {sys.executable}: `make gpu-tools` installs what is needed"
    import torch

    if not torch.cuda.is_available():
        built = f"PyTorch {torch.__version__}, built for CUDA {torch.version.cuda}"
        return f"PyTorch sees no GPU ({built}); `nvidia-smi` shows whether the driver answers"
    return ""


def package(wheel: Path | None, folder: str) -> Path:
    """Give the folder that has GT: where a wheel was unpacked, or where it is built."""
    wheels = sorted(TOP.glob("dist/*.whl"), key=lambda path: path.stat().st_mtime)
    if wheel is None and wheels:
        wheel = wheels[-1]
    if wheel is not None:
        print(f"GT from {wheel}", flush=True)
        with zipfile.ZipFile(wheel) as file:
            file.extractall(folder)
        return Path(folder)
    if not list((TOP / "python" / "gt").glob("_gt.*")):
        sys.exit("there is no wheel in dist/, and nothing is built in python/: give --wheel")
    print(f"GT from {TOP / 'python'}", flush=True)
    return TOP / "python"


def main() -> int:
    """Run what is asked for; give the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--wheel", type=Path, help="GT as a wheel (default: the newest in dist/)")
    parser.add_argument("--write", type=Path, help="write what was measured into this page")
    parser.add_argument("--no-tests", action="store_true", help="only the benchmarks")
    parser.add_argument("--no-benches", action="store_true", help="only the tests")
    parser.add_argument("--standin", action="store_true", help="on the processor, in small")
    parser.add_argument("rest", nargs="*", help="what else pytest is told, after --")
    args = parser.parse_args()
    environment = {**os.environ, "GT_BACKEND": ""}
    if args.standin:
        loudly("NO GPU is used: a stand-in on the processor takes its place")
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
