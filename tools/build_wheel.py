"""Build a wheel for every Linux with glibc 2.28 into `dist/`: `make wheel` runs this.

Zig's compiler and linker replace the system's, so that the module needs only symbols of glibc 2.28
and contains the C++ library; they also cross-compile (`ARCH=aarch64`). Debug information is written
to a separate file.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
COMPATIBILITY = "manylinux_2_28"
GLIBC = (2, 28)

#: The largest size of a wheel, in bytes.
LARGEST = 15_000_000

#: System libraries that a wheel may need: PEP 600 guarantees them.
ALLOWED = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libpthread.so.0", "libdl.so.2", "librt.so.1"}
ALLOWED |= {"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


class Unfit(Exception):
    """The wheel cannot be built, or would not work on other systems: the reason, and advice."""


def run(*command: str, **options) -> str:
    """Run a program, and return its output.

    Raises:
        Unfit: the program fails.
    """
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, **options)
    if done.returncode:
        raise Unfit(f"{command[0]} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def tools() -> list[str]:
    """Return the packages that building a wheel needs: the extra `wheel` in pyproject.toml."""
    (listed,) = re.findall(r"(?m)^wheel = \[(.*)\]$", (ROOT / "pyproject.toml").read_text())
    return re.findall(r'"([^"]+)"', listed)


def check_flags() -> None:
    """Raise an error for compiler flags that target a specific processor."""
    for name, value in os.environ.items():
        is_flags = name.endswith(("CFLAGS", "CXXFLAGS", "RUSTFLAGS"))
        if is_flags and re.search(r"target-cpu|-march|-mcpu|-mtune", value):
            raise Unfit(f"{name}={value} compiles for one processor: unset it to build a wheel")


def write_commit() -> None:
    """Write the commit into a file of the package, for `gt --version`."""
    try:
        text = run("git", "log", "-1", "--format=%h, %cs")
    except (Unfit, OSError):
        return
    (ROOT / "python" / "gt" / "_commit.txt").write_text(text)


def compile_wheel(target: str, profile: str) -> Path:
    """Compile, and return the path of maturin's wheel, whose module has debug information."""
    libraries = Path(run("rustc", "--print", "target-libdir", "--target", target).strip())
    if not libraries.is_dir():
        raise Unfit(f"Rust's libraries for {target} are missing: rustup target add {target}")
    folder = ROOT / "target" / "wheels" / target
    shutil.rmtree(folder, ignore_errors=True)
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    command = [str(BIN / "maturin"), "build", "--profile", profile, "--zig", "--target", target]
    command += ["--compatibility", COMPATIBILITY, "--out", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=environment)
    if done.returncode:
        raise Unfit("the compilation failed: see the reason above")
    (wheel,) = folder.glob("*.whl")
    return wheel


def document_stubs(package: Path, arch: str) -> str:
    """Write the documentation into the stubs of an unpacked wheel, for editors; return a remark.

    The documentation comes from the wheel's own module, or, if that is compiled for another
    processor, from the module of this environment.
    """
    path = [str(package)] if arch == platform.machine() else []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    generate = str(ROOT / "tools" / "docs" / "generate.py")
    command = [sys.executable, generate, "--docstrings", str(package / "gt-stubs")]
    try:
        run(*command, env=environment)
    except Unfit:
        if path:
            raise
        return "SKIPPED: the stubs lack documentation, as gt is not installed here (make build)"
    return "the stubs have documentation"


def split_debug(module: Path, debug: Path, arch: str) -> None:
    """Move a module's debug information into a separate file, linked by its name."""
    objcopy = [sys.executable, "-m", "ziglang", "objcopy"]
    if shutil.which("objcopy") and arch == platform.machine():
        objcopy = ["objcopy"]
    debug.parent.mkdir(parents=True, exist_ok=True)
    run(*objcopy, "--only-keep-debug", str(module), str(debug))
    stripped = module.with_suffix(".stripped")
    run(*objcopy, "--strip-all", f"--add-gnu-debuglink={debug}", str(module), str(stripped))
    stripped.replace(module)


def check_module(module: Path) -> None:
    """Check the system libraries and the version of glibc that the module needs.

    Raises:
        Unfit: systems may lack one of them.
    """
    from elftools.elf.elffile import ELFFile

    with module.open("rb") as file:
        elf = ELFFile(file)
        tags = elf.get_section_by_name(".dynamic").iter_tags()
        needed = {tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"}
        if others := needed - ALLOWED:
            raise Unfit(f"the module needs {', '.join(sorted(others))}, which systems may lack")
        section = elf.get_section_by_name(".gnu.version_r")
        names = [entry.name for _, entries in section.iter_versions() for entry in entries]
    versions = [
        tuple(map(int, name[6:].split("."))) for name in names if re.match(r"GLIBC_\d", name)
    ]
    newest = max(versions, default=GLIBC)
    if newest > GLIBC:
        raise Unfit(f"the module needs glibc {'.'.join(map(str, newest))}, expected 2.28 at most")


def check_processor(wheel: Path) -> str:
    """Import the wheel on an emulated x86-64-v2 processor; return a line about the result."""
    emulator = shutil.which("qemu-x86_64") or shutil.which("qemu-x86_64-static")
    if emulator is None and os.environ.get("CI"):
        raise Unfit("there is no qemu-x86_64, which the import test needs: apt install qemu-user")
    if emulator is None:
        return "SKIPPED: no qemu-x86_64 (apt install qemu-user): not imported on x86-64-v2"
    room = ROOT / "target" / "wheels" / "x86-64-v2"
    shutil.rmtree(room, ignore_errors=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(room)
    # The oldest processor that NumPy supports. GT, too, must not use more than it detects.
    program = "import gt; print((gt.ones(2, 3) @ gt.ones(3, 2)).sum().item())"
    environment = {**os.environ, "PYTHONPATH": str(room)}
    python = str(Path(sys.executable).resolve())
    packages = run(sys.executable, "-c", "import numpy; print(numpy.__path__[0] + '/..')").strip()
    environment["PYTHONPATH"] += os.pathsep + packages
    try:
        printed = run(
            emulator, "-cpu", "Nehalem", python, "-c", program, env=environment, timeout=300
        )
    except (Unfit, subprocess.TimeoutExpired) as error:
        raise Unfit(f"the wheel cannot be imported on x86-64-v2: {error}") from None
    if printed.strip() != "12.0":
        raise Unfit(f"on x86-64-v2 a product is {printed.strip()}, expected 12.0")
    return "imported and computed on x86-64-v2 (emulated)"


def finish(made: Path, arch: str) -> Path:
    """Split off the debug information of a wheel, check it, and write it to `dist/`.

    Returns:
        Its path.
    """
    room = made.parent / "unpacked"
    run(sys.executable, "-m", "wheel", "unpack", str(made), "--dest", str(room))
    (folder,) = room.iterdir()
    (module,) = folder.glob("gt/_gt*.so")
    output = ROOT / "dist"
    split_debug(module, output / "debug" / f"_gt.{arch}.so.debug", arch)
    check_module(module)
    if not (folder / "gt-stubs" / "py.typed").exists():
        raise Unfit("the wheel lacks gt-stubs: see python-packages in pyproject.toml")
    print(document_stubs(folder, arch))
    licences = {path.name for path in folder.glob("*.dist-info/licenses/**/*") if path.is_file()}
    sboms = list(folder.glob("*.dist-info/sboms/*.json"))
    if len(licences) < 2 or not sboms:
        raise Unfit(
            f"the wheel has licences {sorted(licences)} and {len(sboms)} SBOMs, expected at least "
            "2 licences and an SBOM"
        )
    output.mkdir(exist_ok=True)
    printed = run(sys.executable, "-m", "wheel", "pack", str(folder), "--dest-dir", str(output))
    wheel = output / re.findall(r"[\w.+-]+\.whl", printed)[0]
    if wheel.stat().st_size > LARGEST:
        raise Unfit(
            f"{wheel.name} has {wheel.stat().st_size:,} bytes, expected {LARGEST:,} at most"
        )
    return wheel


def main() -> int:
    """Build a wheel; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--arch", default="x86_64", choices=("x86_64", "aarch64"))
    parser.add_argument("--profile", default="dist", help="cargo's profile (default: dist)")
    args = parser.parse_args()
    try:
        check_flags()
        run(sys.executable, "-m", "pip", "install", "--quiet", *tools())
        write_commit()
        made = compile_wheel(f"{args.arch}-unknown-linux-gnu", args.profile)
        wheel = finish(made, args.arch)
        size = wheel.stat().st_size / 1e6
        print(f"{wheel.relative_to(ROOT)}: {size:.1f} MB")
        if args.arch == "x86_64":
            print(check_processor(wheel))
    except Unfit as error:
        print(f"cannot build a wheel: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
