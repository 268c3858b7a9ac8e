"""Count the machine instructions of a piece of a program, by thread and by crate.

A program runs under valgrind (`command`), and says itself what is counted (`counted`). Counts are
those of code, not of time: they are the same on every machine, whatever else runs there.
"""

from __future__ import annotations

import ctypes
import mmap
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Requests of callgrind.h; their numbers are part of valgrind's interface.
_TOOL = ord("C") << 24 | ord("T") << 16
_START, _STOP = _TOOL + 4, _TOOL + 5

#: A function that makes valgrind's request for x86-64: `request(arguments)`. On a processor its
#: rotations add up to 128 bits and change nothing.
_REQUEST = bytes.fromhex(
    "4889f8"  # mov rax, rdi: the arguments
    "31d2"  # xor edx, edx: the result without valgrind
    "48c1c703 48c1c70d 48c1c73d 48c1c733"  # rol rdi, 3; 13; 61; 51
    "4887db"  # xchg rbx, rbx
    "4889d0 c3"  # mov rax, rdx; ret
)

#: Objects of the profile that are no crates, by a part of their names.
_OBJECTS = {
    "python": "python",
    "libc": "libc",
    "libm": "libc",
    "ld-linux": "libc",
    "torch": "torch",
}


@contextmanager
def counted() -> Iterator[None]:
    """Count what runs inside the block, in all threads; once in a program."""
    with mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as code:
        code.write(_REQUEST)
        held = ctypes.c_char.from_buffer(code)
        request = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)(ctypes.addressof(held))
        start, stop = (ctypes.c_uint64 * 6)(_START), (ctypes.c_uint64 * 6)(_STOP)
        request(ctypes.addressof(start))
        yield
        request(ctypes.addressof(stop))
        del held


def command(folder: Path) -> list[str]:
    """Return the start of a command that runs a program under valgrind; profiles go to a folder."""
    options = ["--instr-atstart=no", "--separate-threads=yes", "--fair-sched=yes"]
    file = f"--callgrind-out-file={folder / 'profile'}"
    return ["valgrind", "--quiet", "--tool=callgrind", *options, file]


def profile(folder: Path) -> dict[tuple[int, str], int]:
    """Return the instructions that were counted, by the thread's number and the crate."""
    counts: Counter = Counter()
    for path in folder.glob("profile-*"):
        for crate, count in _by_crate(path.read_text()).items():
            counts[int(path.name.rpartition("-")[2]), crate] += count
    return counts


def _by_crate(text: str) -> Counter:
    """Sum a profile by the crates that functions belong to."""
    objects: dict[str, str] = {}
    functions: dict[str, str] = {}
    counts: Counter = Counter()
    crate, object_name, is_call = "", "", False
    for line in text.splitlines():
        if line.startswith("calls="):
            is_call = True
        elif found := re.match(r"(ob|cob|fn|cfn)=\((\d+)\)(?: (.*))?$", line):
            kind, number, name = found.groups()
            names = objects if kind.endswith("ob") else functions
            if name:
                names[number] = name
            if kind == "ob":
                object_name = names[number]
            elif kind == "fn":
                crate = _crate(object_name, names[number])
        elif re.match(r"[+\-*\d]", line):
            if not is_call:
                counts[crate] += int(line.split()[-1])
            is_call = False
    return counts


def _crate(object_name: str, function: str) -> str:
    """Return the crate of a function, or the library that it is in."""
    file = Path(object_name).name
    if "_gt" not in file:
        return next((name for part, name in _OBJECTS.items() if part in file), "other")
    path = re.match(
        r"[<&*\[(]*(?:(?:mut|dyn|const|unsafe|as|impl) )*([a-z_][a-z_0-9]*)::", function
    )
    name = path[1] if path else "C"
    return "std" if name in ("core", "alloc", "std", "hashbrown", "smallvec") else name
