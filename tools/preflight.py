"""Check, in a second, that GT can be built here: each missing prerequisite is reported in one line.

Any Python 3 can run this file, as a Python that is too old is one of the problems it reports.
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

#: The bytes that a first build writes, and those of a later one.
DISK_FIRST = 3000000000
DISK_LATER = 500000000

#: The oldest glibc that wheels support; building needs it as well.
GLIBC = (2, 28)

#: Compiled, not linked, to test that the compiler can compile libsodium and libzmq.
PROGRAM = """
#include <immintrin.h>
#include <memory>
__m512i twice(__m512i x) { return _mm512_add_epi64(x, x); }
std::unique_ptr<int> one() { return std::unique_ptr<int>(new int(1)); }
"""


class Missing(Exception):
    """A missing prerequisite, and what to do about it: one line."""


def run(*command):
    """Return the output of a program, or None if it does not exist or fails."""
    try:
        done = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True
        )
    except OSError:
        return None
    text = done.communicate()[0]
    return text if done.returncode == 0 else None


def version(text):
    """Return the first version number in a text as a tuple."""
    found = re.search(r"(\d+)\.(\d+)", text or "")
    return (int(found.group(1)), int(found.group(2))) if found else (0, 0)


def wanted(name, pattern):
    """Return the version that a file of the project requires."""
    with open(os.path.join(ROOT, name)) as file:
        return version(re.findall(pattern, file.read())[0])


def dotted(numbers):
    """Return a version as text."""
    return ".".join(str(number) for number in numbers)


def check_python():
    """Check that Python is new enough and can create virtual environments."""
    oldest = wanted("pyproject.toml", r'requires-python = ">=([\d.]+)"')
    if sys.version_info[:2] < oldest:
        raise Missing(
            "Python %s runs as '%s', %s or newer is needed: name one, as in "
            "PYTHON=python%s make build"
            % (dotted(sys.version_info[:2]), sys.executable, dotted(oldest), dotted(oldest))
        )
    # Debian has both in a separate package.
    for module in ("venv", "ensurepip"):
        try:
            __import__(module)
        except ImportError:
            raise Missing("Python's module '%s' is missing: apt install python3-venv" % module)


def check_rust():
    """Check that Cargo and rustc exist, and are new enough."""
    oldest = wanted("Cargo.toml", r'rust-version = "([\d.]+)"')
    for name in ("cargo", "rustc"):
        found = run(name, "--version")
        if found is None:
            raise Missing(
                "there is no %s: install Rust %s or newer (https://rustup.rs), or source "
                "~/.cargo/env" % (name, dotted(oldest))
            )
        if version(found) < oldest:
            raise Missing(
                "%s is too old, %s or newer is needed: rustup update"
                % (found.strip(), dotted(oldest))
            )


def check_compiler():
    """Check that a C and a C++ compiler exist, and can compile the C libraries."""
    for variable, names in (("CC", ["cc", "gcc", "clang"]), ("CXX", ["c++", "g++", "clang++"])):
        names = [os.environ[variable]] if os.environ.get(variable) else names
        if not any(shutil.which(name.split()[0]) for name in names if name.strip()):
            raise Missing(
                "there is no %s compiler (%s): apt install build-essential"
                % ("C++" if variable == "CXX" else "C", ", ".join(names))
            )
    compiler = next(name for name in names if shutil.which(name.split()[0]))
    if os.uname().machine != "x86_64":
        return
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "check.cpp")
        with open(source, "w") as file:
            file.write(PROGRAM)
        command = compiler.split() + ["-std=c++11", "-mavx512f", "-fsyntax-only", source]
        if run(*command) is None:
            raise Missing(
                "%s compiles no C++11 with AVX-512: GCC 8 or Clang 7 or newer is needed" % compiler
            )


def check_system():
    """Check that the C library is new enough."""
    if not sys.platform.startswith("linux"):
        return
    try:
        name, number = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()
    except (ValueError, AttributeError, OSError):
        raise Missing(
            "this system has no GNU C library: GT builds with glibc %s or newer" % dotted(GLIBC)
        )
    if version(number) < GLIBC:
        raise Missing(
            "glibc is %s, %s or newer is needed: use a newer system" % (number, dotted(GLIBC))
        )


def check_folder():
    """Check that the checkout is writable, and the disk has enough free space."""
    profile = sys.argv[1] if len(sys.argv) > 1 else "release"
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
    for folder in (ROOT, target):
        if os.path.isdir(folder):
            try:
                tempfile.TemporaryFile(dir=folder).close()
            except OSError as error:
                advice = "clone it to a folder that is yours"
                if folder == target:
                    advice = "remove it, or set CARGO_TARGET_DIR to another folder"
                raise Missing("%s cannot be written (%s): %s" % (folder, error.strerror, advice))
    found = os.path.join(target, "**", profile, "deps", "libgt_ir-*.rlib")
    is_first = not glob.glob(found, recursive=True)
    needed = DISK_FIRST if is_first else DISK_LATER
    place = target if os.path.isdir(target) else ROOT
    free = shutil.disk_usage(place).free
    if free < needed:
        raise Missing(
            "%s has %.1f GB left, a build needs %.1f GB: make room, or set CARGO_TARGET_DIR to "
            "another disk" % (place, free / 1e9, needed / 1e9)
        )


def check_environment():
    """Check that the virtual environment has no other package called gt."""
    for folder in glob.glob(os.path.join(ROOT, ".venv", "lib", "python*", "site-packages", "gt")):
        if glob.glob(os.path.join(os.path.dirname(folder), "gt_tensor-*.dist-info")):
            continue
        raise Missing(
            "%s is another package called gt: .venv/bin/pip uninstall gt, or remove .venv" % folder
        )


CHECKS = [check_python, check_system, check_rust, check_compiler, check_folder, check_environment]


def main():
    """Run all checks; print a line for each missing prerequisite. Return the exit status."""
    missing = []
    for check in CHECKS:
        try:
            check()
        except Missing as error:
            missing.append(str(error))
    for line in missing:
        sys.stderr.write("cannot build: %s\n" % line)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
