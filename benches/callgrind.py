"""Count the machine instructions of a part of a program, by thread and by crate.

A program runs under valgrind (`command`), and marks the part that is counted (`counted`). Counts do
not depend on the load of the machine, unlike times.
"""

from __future__ import annotations

import ctypes
import mmap
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Client requests of callgrind.h; their numbers are part of valgrind's interface.
_TOOL = ord("C") << 24 | ord("T") << 16
_START, _STOP = _TOOL + 4, _TOOL + 5

#: The x86-64 code of a function that makes a client request: `request(arguments)`. Outside valgrind
#: its rotations add up to 128 bits and have no effect.
_REQUEST = bytes.fromhex(
    "4889f8"  # mov rax, rdi: the arguments
    "31d2"  # xor edx, edx: the result without valgrind
    "48c1c703 48c1c70d 48c1c73d 48c1c733"  # rol rdi, 3; 13; 61; 51
    "4887db"  # xchg rbx, rbx
    "4889d0 c3"  # mov rax, rdx; ret
)

#: The names of objects in the profile that are not crates, by a part of their file names.
_OBJECTS = {
    "python": "python",
    "libc": "libc",
    "libm": "libc",
    "ld-linux": "libc",
    "torch": "torch",
}


@contextmanager
def counted() -> Iterator[None]:
    """Count the instructions of all threads during the block. At most once in a program."""
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
    """Return a command prefix that runs a program under valgrind, with profiles in a folder."""
    options = ["--instr-atstart=no", "--separate-threads=yes", "--fair-sched=yes"]
    file = f"--callgrind-out-file={folder / 'profile'}"
    return ["valgrind", "--quiet", "--tool=callgrind", *options, file]


def profile(folder: Path) -> dict[tuple[int, str], int]:
    """Return the counted instructions by thread number and crate."""
    counts: Counter = Counter()
    for path in folder.glob("profile-*"):
        for crate, count in _by_crate(path.read_text()).items():
            counts[int(path.name.rpartition("-")[2]), crate] += count
    return counts


def _by_crate(text: str) -> Counter:
    """Return the sums of a profile by the crates of its functions."""
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
    """Return the crate of a function, or its library."""
    file = Path(object_name).name
    if "_gt" not in file:
        return next((name for part, name in _OBJECTS.items() if part in file), "other")
    path = re.match(
        r"[<&*\[(]*(?:(?:mut|dyn|const|unsafe|as|impl) )*([a-z_][a-z_0-9]*)::", function
    )
    name = path[1] if path else "C"
    return "std" if name in ("core", "alloc", "std", "hashbrown", "smallvec") else name
