//! Builds libzmq with encryption (CURVE, by libsodium) and its draft options (disconnect
//! notifications of ROUTER sockets). The published crate builds without either.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build/main.rs");
    let lib = env::var("DEP_SODIUM_LIB").expect("libsodium-sys-stable says where it built");
    let include = env::var("DEP_SODIUM_INCLUDE").expect("libsodium-sys-stable says where it built");
    zeromq_src::Build::new()
        .with_libsodium(Some(zeromq_src::LibLocation::new(lib, include)))
        .enable_draft(true)
        .build();
}
