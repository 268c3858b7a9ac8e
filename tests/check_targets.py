"""Type-check the crates for the systems that GT cannot be run on here.

A target's standard library comes from rustup (`rustup target add TARGET`), or is compiled from its
source, which a toolchain has as `rust-src` (`rustup component add rust-src`; on Debian the packages
`rustc-web` and `rust-web-src`, whose compiler is /usr/bin/rustc). Where there is neither, the
target is skipped, which is said loudly.

No C is compiled: cargo takes the build scripts of libzmq and libsodium for done. Nothing is linked.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

#: The crates that have no system's business in them.
CORES = ["gt-ir", "gt-client", "gt-dispatcher", "gt-policy", "gt-worker", "gt-engine-native"]

#: What is checked for each target; an empty list stands for all crates.
TARGETS: dict[str, list[str]] = {
    "aarch64-apple-darwin": [],
    "x86_64-apple-darwin": [],
    "aarch64-unknown-linux-gnu": [],
    "x86_64-pc-windows-msvc": CORES,
}

#: Libraries of C, by the name under which a build script says where they are.
LIBRARIES = ["zmq", "sodium"]
ROOT = Path(__file__).resolve().parent.parent


def ask(compiler: str, *arguments: str) -> Path:
    """Return the folder that a compiler names."""
    done = subprocess.run([compiler, *arguments], capture_output=True, text=True, cwd=ROOT)
    return Path(done.stdout.strip() or "/nowhere")


def find(target: str) -> tuple[str, bool] | None:
    """Return a compiler, and whether it is to compile the standard library; None without one."""
    compilers = [path for path in ("rustc", "/usr/bin/rustc") if shutil.which(path)]
    for compiler in compilers:
        if list(ask(compiler, "--print", "target-libdir", "--target", target).glob("libstd-*")):
            return compiler, False
    for compiler in compilers:
        sysroot = ask(compiler, "--print", "sysroot")
        if (sysroot / "lib/rustlib/src/rust/library/std/Cargo.toml").exists():
            return compiler, True
    return None


def check(target: str, crates: list[str], compiler: str, compiles_std: bool) -> bool:
    """Run cargo check for a target."""
    command = ["cargo", "check", "--quiet", "--target", target, "--keep-going"]
    # Nothing is run: optimizing macros and build scripts takes longer than they do.
    command += ["--config", 'profile.dev.package."*".opt-level=0']
    for library in LIBRARIES:
        command += ["--config", f'target.{target}.{library}.rustc-link-lib=["{library}"]']
    environment = {**os.environ, "RUSTC": compiler, "PYO3_NO_PYTHON": "1"}
    environment.setdefault("CARGO_TARGET_DIR", str(ROOT / "target" / "check-targets"))
    if compiles_std:
        command += ["-Z", "build-std=std,panic_abort"]
        environment["RUSTC_BOOTSTRAP"] = "1"
    command += [part for crate in crates for part in ("-p", crate)] or ["--workspace"]
    return subprocess.run(command, cwd=ROOT, env=environment).returncode == 0


def main() -> int:
    """Check the targets that are named, or all."""
    failed = False
    for target in sys.argv[1:] or TARGETS:
        found = find(target)
        if found is None:
            print(
                f"SKIPPED: {target}: its standard library is not here, so NOTHING was checked\n"
                f"  hint: rustup target add {target}, or rustup component add rust-src"
            )
            continue
        crates = TARGETS.get(target, [])
        said = ", ".join(crates) or "all crates"
        print(f"{target}: checking {said} by {found[0]}", flush=True)
        passes = check(target, crates, *found)
        print(f"{target}: {'passes' if passes else 'FAILS'}", flush=True)
        failed |= not passes
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
