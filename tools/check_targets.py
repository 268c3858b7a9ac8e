"""Type-check the crates for systems on which this machine cannot run GT.

A target's standard library comes from rustup (`rustup target add TARGET`), or is compiled from its
source, the component `rust-src` (`rustup component add rust-src`; on Debian the packages
`rustc-web` and `rust-web-src`, whose compiler is /usr/bin/rustc). A target without either is
skipped with a message.

No C is compiled and nothing is linked: the configuration replaces the build scripts of libzmq and
libsodium.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

#: The crates that do not depend on an operating system.
CORES = ["gt-ir", "gt-client", "gt-dispatcher", "gt-policy", "gt-worker", "gt-engine-native"]

#: The crates that are checked for each target; an empty list means all.
TARGETS: dict[str, list[str]] = {
    "aarch64-apple-darwin": [],
    "x86_64-apple-darwin": [],
    "aarch64-unknown-linux-gnu": [],
    "x86_64-pc-windows-msvc": CORES,
}

#: C libraries, by the `links` names of their crates.
LIBRARIES = ["zmq", "sodium"]
ROOT = Path(__file__).resolve().parent.parent


def ask(compiler: str, *arguments: str) -> Path:
    """Return the path that a compiler prints."""
    done = subprocess.run([compiler, *arguments], capture_output=True, text=True, cwd=ROOT)
    return Path(done.stdout.strip() or "/nowhere")


def find(target: str) -> tuple[str, bool] | None:
    """Return a compiler, and whether it must compile the standard library; None if none fits."""
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
    # Optimizing macros and build scripts would take longer than running them does.
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
    """Check the targets on the command line, or all."""
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
        names = ", ".join(crates) or "all crates"
        print(f"{target}: checking {names} with {found[0]}", flush=True)
        passes = check(target, crates, *found)
        print(f"{target}: {'passes' if passes else 'FAILS'}", flush=True)
        failed |= not passes
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
