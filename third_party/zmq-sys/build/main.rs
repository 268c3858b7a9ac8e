//! Builds libzmq with encryption (CURVE, by libsodium) and its draft options (disconnect
//! notifications of ROUTER sockets). The published crate builds without either.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build/main.rs");
    let variable = |name| env::var(name).expect("libsodium-sys says where its library and headers are");
    let mut flags = env::var("CXXFLAGS").unwrap_or_default();
    // Its own sources warn; they are not ours to change.
    flags += " -w";
    // SAFETY: a build script has one thread.
    unsafe { env::set_var("CXXFLAGS", flags) };
    let location = zeromq_src::LibLocation::new(variable("DEP_SODIUM_LIB"), variable("DEP_SODIUM_INCLUDE"));
    zeromq_src::Build::new().with_libsodium(Some(location)).enable_draft(true).build();
}
