"""The resources that a process holds, for tests that look for leaks."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Counts:
    """The resources that a process holds at one moment."""

    #: Bytes of private memory.
    memory: int
    descriptors: int
    threads: int
    #: Blocks of memory that it shares with other processes, and their bytes.
    blocks: int
    shared: int

    @classmethod
    def of(cls, pid: int) -> "Counts":
        """Count the resources of a process."""
        process = Path("/proc") / str(pid)
        status = (process / "status").read_text().splitlines()
        memory = next(line.split()[1] for line in status if line.startswith("RssAnon:"))
        descriptors = blocks = shared = 0
        for descriptor in (process / "fd").iterdir():
            try:
                target, size = os.readlink(descriptor), descriptor.stat().st_size
            except OSError:
                continue  # It was closed meanwhile.
            descriptors += 1
            if target.startswith("/memfd:gt-block"):
                blocks += 1
                shared += size
        threads = len(os.listdir(process / "task"))
        return cls(int(memory) * 1024, descriptors, threads, blocks, shared)

    def excess(self, of: "Counts", memory: int) -> list[str]:
        """Return a line for each resource of which `of` has more; `memory` bytes are allowed."""
        allowed = {"memory": memory, "descriptors": 8, "threads": 2, "blocks": 8, "shared": memory}
        return [
            f"{name}: {getattr(self, name)} before, {getattr(of, name)} now"
            for name, most in allowed.items()
            if getattr(of, name) > getattr(self, name) + most
        ]
