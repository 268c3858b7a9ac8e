//! Builds libzmq, whose sources the crate zeromq-src carries, with encryption (CURVE, by libsodium) and with its draft
//! options (disconnect notifications of ROUTER sockets). The published crate builds without either.
//!
//! All sources are one translation unit: their headers are read once and not a hundred times, which takes 13 s of
//! processor time instead of 60.

use std::env;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Sources that need libraries which GT does not use; without them their code would be empty anyway.
const LEFT_OUT: &[&str] = &["wss_address.cpp", "wss_engine.cpp"];

const SETTINGS: &[&str] = &[
    "HAVE_STRNLEN",
    "ZMQ_BUILD_DRAFT_API",
    "ZMQ_HAVE_CURVE",
    "ZMQ_HAVE_IPC",
    "ZMQ_HAVE_STRUCT_SOCKADDR_UN",
    "ZMQ_HAVE_UIO",
    "ZMQ_HAVE_WS",
    "ZMQ_POLL_BASED_ON_POLL",
    "ZMQ_STATIC",
    "ZMQ_USE_BUILTIN_SHA1",
    "ZMQ_USE_CV_IMPL_STL11",
    "ZMQ_USE_LIBSODIUM",
];
const LINUX: &[&str] = &["ZMQ_HAVE_LINUX", "ZMQ_IOTHREAD_POLLER_USE_EPOLL"];
const BSD: &[&str] = &["ZMQ_HAVE_STRLCPY", "ZMQ_IOTHREAD_POLLER_USE_KQUEUE"];

fn main() {
    println!("cargo::rerun-if-changed=build/main.rs");
    let vendor = sources();
    let out = PathBuf::from(variable("OUT_DIR"));
    // Settings come from the compiler's flags; libzmq wants the file all the same.
    fs::write(out.join("platform.hpp"), "").expect("the output folder is writable");
    fs::write(out.join("libzmq.cpp"), unit(&vendor)).expect("the output folder is writable");

    let mut base = cc::Build::new();
    base.warnings(false).flag("-w").debug(false);
    base.include(&out).include(vendor.join("include")).include(vendor.join("src"));
    base.include(variable("DEP_SODIUM_INCLUDE"));
    let by_system = if variable("CARGO_CFG_TARGET_OS") == "linux" { LINUX } else { BSD };
    for setting in SETTINGS.iter().chain(by_system) {
        base.define(setting, "1");
    }
    let mut sha1 = base.clone();
    let sha1 = sha1.file(vendor.join("external/sha1/sha1.c")).compile_intermediates();
    base.cpp(true).std("c++11").file(out.join("libzmq.cpp"));
    sha1.into_iter().for_each(|object| {
        base.object(object);
    });
    base.compile("zmq");
    println!("cargo::rustc-link-search=native={}", variable("DEP_SODIUM_LIB"));
    println!("cargo::rustc-link-lib=static=sodium");
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{} is set by cargo, or by libsodium-sys", name))
}

/// One source that includes all others.
fn unit(vendor: &Path) -> String {
    let entries = fs::read_dir(vendor.join("src")).expect("libzmq's sources are readable");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("an entry of a folder").file_name().into_string().expect("UTF-8"))
        .filter(|name| name.ends_with(".cpp") && !LEFT_OUT.contains(&name.as_str()))
        .collect();
    names.sort();
    names.iter().fold(String::new(), |mut text, name| {
        writeln!(text, "#include \"{name}\"").expect("strings can be written");
        text
    })
}

/// The folder of libzmq's sources. A build script is not told where its dependencies are: cargo is asked.
fn sources() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    let done = Command::new(variable("CARGO"))
        .args(["metadata", "--format-version=1", "--offline", "--manifest-path"])
        .arg(workspace)
        .output()
        .expect("cargo can be run");
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let manifest = text
        .split("\"manifest_path\":\"")
        .filter_map(|rest| rest.split('"').next())
        .find(|path| path.replace('\\', "/").rsplit('/').nth(1).is_some_and(is_zeromq));
    let manifest = manifest.unwrap_or_else(|| {
        panic!("cargo metadata does not name zeromq-src: {}", String::from_utf8_lossy(&done.stderr))
    });
    Path::new(manifest).parent().expect("a manifest stands in a folder").join("vendor")
}

fn is_zeromq(folder: &str) -> bool {
    folder.starts_with("zeromq-src")
}
