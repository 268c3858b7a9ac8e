//! Compiles the sources in `vendor/`, which are libsodium's as published, with the settings that its `configure`
//! finds, and `src/init.c`, which initializes just these.

use std::env;
use std::path::{Path, PathBuf};

/// Compiled on every processor.
const SOURCES: &[&str] = &[
    "crypto_box/crypto_box.c",
    "crypto_box/curve25519xsalsa20poly1305/box_curve25519xsalsa20poly1305.c",
    "crypto_core/ed25519/ref10/ed25519_ref10.c",
    "crypto_core/hsalsa20/ref2/core_hsalsa20_ref2.c",
    "crypto_core/salsa/ref/core_salsa_ref.c",
    "crypto_generichash/blake2b/ref/blake2b-compress-ref.c",
    "crypto_generichash/blake2b/ref/blake2b-ref.c",
    "crypto_generichash/blake2b/ref/generichash_blake2b.c",
    "crypto_generichash/crypto_generichash.c",
    "crypto_hash/sha512/cp/hash_sha512_cp.c",
    "crypto_onetimeauth/poly1305/donna/poly1305_donna.c",
    "crypto_onetimeauth/poly1305/onetimeauth_poly1305.c",
    "crypto_scalarmult/crypto_scalarmult.c",
    "crypto_scalarmult/curve25519/ref10/x25519_ref10.c",
    "crypto_scalarmult/curve25519/sandy2x/curve25519_sandy2x.c",
    "crypto_scalarmult/curve25519/sandy2x/fe51_invert.c",
    "crypto_scalarmult/curve25519/sandy2x/fe_frombytes_sandy2x.c",
    "crypto_scalarmult/curve25519/scalarmult_curve25519.c",
    "crypto_secretbox/crypto_secretbox.c",
    "crypto_secretbox/xsalsa20poly1305/secretbox_xsalsa20poly1305.c",
    "crypto_stream/chacha20/ref/chacha20_ref.c",
    "crypto_stream/chacha20/stream_chacha20.c",
    "crypto_stream/salsa20/ref/salsa20_ref.c",
    "crypto_stream/salsa20/stream_salsa20.c",
    "crypto_stream/salsa20/xmm6/salsa20_xmm6.c",
    "crypto_stream/xsalsa20/stream_xsalsa20.c",
    "crypto_verify/verify.c",
    "randombytes/randombytes.c",
    "randombytes/sysrandom/randombytes_sysrandom.c",
    "sodium/runtime.c",
    "sodium/utils.c",
];

/// Compiled for one instruction set of x86-64; which of them runs is chosen at run time.
const X86_64: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "crypto_scalarmult/curve25519/sandy2x/sandy2x.S",
            "crypto_stream/salsa20/xmm6/salsa20_xmm6-asm.S",
        ],
    ),
    ("-msse2", &["crypto_onetimeauth/poly1305/sse2/poly1305_sse2.c"]),
    (
        "-mssse3",
        &[
            "crypto_generichash/blake2b/ref/blake2b-compress-ssse3.c",
            "crypto_stream/chacha20/dolbeau/chacha20_dolbeau-ssse3.c",
        ],
    ),
    ("-msse4.1", &["crypto_generichash/blake2b/ref/blake2b-compress-sse41.c"]),
    (
        "-mavx2",
        &[
            "crypto_generichash/blake2b/ref/blake2b-compress-avx2.c",
            "crypto_stream/chacha20/dolbeau/chacha20_dolbeau-avx2.c",
            "crypto_stream/salsa20/xmm6int/salsa20_xmm6int-avx2.c",
        ],
    ),
    (
        "-mavx512f",
        &[
            "crypto_stream/chacha20/dolbeau/chacha20_dolbeau-avx512.c",
            "crypto_stream/salsa20/xmm6int/salsa20_xmm6int-avx512.c",
        ],
    ),
];

/// What `configure` finds on every system that GT runs on: 64 bits, little-endian, POSIX, GCC or Clang.
const SETTINGS: &[&str] = &[
    "CONFIGURED",
    "HAVE_ALLOCA",
    "HAVE_ALLOCA_H",
    "HAVE_ATOMIC_OPS",
    "HAVE_C11_MEMORY_FENCES",
    "HAVE_CLOCK_GETTIME",
    "HAVE_C_VARARRAYS",
    "HAVE_GCC_MEMORY_FENCES",
    "HAVE_GETENTROPY",
    "HAVE_GETPID",
    "HAVE_INLINE_ASM",
    "HAVE_MADVISE",
    "HAVE_MLOCK",
    "HAVE_MMAP",
    "HAVE_MPROTECT",
    "HAVE_NANOSLEEP",
    "HAVE_POSIX_MEMALIGN",
    "HAVE_PTHREAD",
    "HAVE_RAISE",
    "HAVE_SYSCONF",
    "HAVE_SYS_MMAN_H",
    "HAVE_SYS_PARAM_H",
    "HAVE_SYS_RANDOM_H",
    "HAVE_TI_MODE",
    "HAVE_WEAK_SYMBOLS",
    "NATIVE_LITTLE_ENDIAN",
];
const LINUX: &[&str] =
    &["HAVE_EXPLICIT_BZERO", "HAVE_GETAUXVAL", "HAVE_GETRANDOM", "HAVE_SYS_AUXV_H"];
const MACOS: &[&str] = &["HAVE_ARC4RANDOM", "HAVE_ARC4RANDOM_BUF", "HAVE_MEMSET_S"];
const X86_64_SETTINGS: &[&str] = &[
    "HAVE_AMD64_ASM",
    "HAVE_AVX2INTRIN_H",
    "HAVE_AVX512FINTRIN_H",
    "HAVE_AVXINTRIN_H",
    "HAVE_AVX_ASM",
    "HAVE_CPUID",
    "HAVE_EMMINTRIN_H",
    "HAVE_MMINTRIN_H",
    "HAVE_PMMINTRIN_H",
    "HAVE_SMMINTRIN_H",
    "HAVE_TMMINTRIN_H",
    "HAVE_XGETBV_ASM",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/init.c");
    let vendor = Path::new(env!("CARGO_MANIFEST_DIR")).join("vendor");
    let variable = |name| env::var(name).expect("cargo sets it for build scripts");
    let (system, processor) = (variable("CARGO_CFG_TARGET_OS"), variable("CARGO_CFG_TARGET_ARCH"));
    let mut base = cc::Build::new();
    base.opt_level(3).debug(false).warnings(false).flag("-pthread");
    base.flag("-fvisibility=hidden").flag("-fno-strict-aliasing").flag("-fno-strict-overflow");
    base.include(vendor.join("include")).include(vendor.join("include/sodium"));
    base.define("SODIUM_STATIC", "1").define("_GNU_SOURCE", "1").define("TLS", "_Thread_local");
    base.define("ASM_HIDE_SYMBOL", if system == "macos" { ".private_extern" } else { ".hidden" });
    let by_system = if system == "macos" { MACOS } else { LINUX };
    let is_x86_64 = processor == "x86_64";
    let by_processor = if is_x86_64 { X86_64_SETTINGS } else { &[] };
    for setting in [SETTINGS, by_system, by_processor].into_iter().flatten() {
        base.define(setting, "1");
    }

    // One archive: files for one instruction set are compiled apart and added as objects.
    let mut all = base.clone();
    all.files(SOURCES.iter().map(|source| vendor.join(source))).file("src/init.c");
    for (flag, sources) in X86_64.iter().filter(|_| is_x86_64) {
        let mut some = base.clone();
        some.files(sources.iter().map(|source| vendor.join(source)));
        if !flag.is_empty() {
            some.flag(flag);
        }
        some.compile_intermediates().into_iter().for_each(|object| {
            all.object(object);
        });
    }
    all.compile("sodium");

    // For the build script of zmq-sys: DEP_SODIUM_INCLUDE and DEP_SODIUM_LIB.
    println!("cargo::metadata=include={}", vendor.join("include").display());
    println!("cargo::metadata=lib={}", PathBuf::from(variable("OUT_DIR")).display());
}
