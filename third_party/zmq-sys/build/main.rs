//! Builds libzmq from `vendor/`, with encryption (CURVE, by libsodium), with its draft options (disconnect notifications
//! of ROUTER sockets) and with GT's changes ([`changes`]). The published zmq-sys builds without any of these.
//!
//! All sources are one translation unit: their headers are read once and not a hundred times, which takes 13 s of
//! processor time instead of 60.

mod changes;

use std::env;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

const SETTINGS: &[&str] = &[
    "HAVE_STRNLEN",
    "ZMQ_BUILD_DRAFT_API",
    "ZMQ_HAVE_CURVE",
    "ZMQ_HAVE_IPC",
    "ZMQ_HAVE_STRUCT_SOCKADDR_UN",
    "ZMQ_HAVE_UIO",
    "ZMQ_POLL_BASED_ON_POLL",
    "ZMQ_STATIC",
    "ZMQ_USE_CV_IMPL_STL11",
    "ZMQ_USE_LIBSODIUM",
];
const LINUX: &[&str] = &[
    "HAVE_ACCEPT4",
    "ZMQ_HAVE_EVENTFD",
    "ZMQ_HAVE_EVENTFD_CLOEXEC",
    "ZMQ_HAVE_LINUX",
    "ZMQ_HAVE_SOCK_CLOEXEC",
    "ZMQ_IOTHREAD_POLLER_USE_EPOLL",
    "ZMQ_IOTHREAD_POLLER_USE_EPOLL_CLOEXEC",
];
const BSD: &[&str] = &["ZMQ_HAVE_STRLCPY", "ZMQ_IOTHREAD_POLLER_USE_KQUEUE"];

fn main() {
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=vendor");
    let vendor = Path::new(env!("CARGO_MANIFEST_DIR")).join("vendor");
    let out = PathBuf::from(variable("OUT_DIR"));
    let changed = out.join("src");
    changes::copy(&vendor.join("src"), &changed);
    // Settings come from the compiler's flags; libzmq wants the file all the same.
    fs::write(out.join("platform.hpp"), "").expect("the output folder is writable");
    fs::write(out.join("libzmq.cpp"), unit(&changed)).expect("the output folder is writable");

    let mut build = cc::Build::new();
    build.warnings(false).flag("-w").debug(false);
    build.include(&out).include(vendor.join("include")).include(&changed);
    build.include(variable("DEP_SODIUM_INCLUDE"));
    let by_system = if variable("CARGO_CFG_TARGET_OS") == "linux" { LINUX } else { BSD };
    for setting in SETTINGS.iter().chain(by_system) {
        build.define(setting, "1");
    }
    build.cpp(true).std("c++11").file(out.join("libzmq.cpp")).compile("zmq");
    println!("cargo::rustc-link-search=native={}", variable("DEP_SODIUM_LIB"));
    println!("cargo::rustc-link-lib=static=sodium");
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{} is set by cargo, or by libsodium-sys", name))
}

/// One source that includes all others.
fn unit(sources: &Path) -> String {
    let entries = fs::read_dir(sources).expect("libzmq's sources are readable");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("an entry of a folder").file_name().into_string().expect("UTF-8"))
        .filter(|name| name.ends_with(".cpp"))
        .collect();
    names.sort();
    names.iter().fold(String::new(), |mut text, name| {
        writeln!(text, "#include \"{name}\"").expect("strings can be written");
        text
    })
}
