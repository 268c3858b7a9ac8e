//! The functions of libsodium that GT itself calls; libzmq calls others.

#![no_std]

use core::ffi::{c_int, c_ulonglong, c_void};

unsafe extern "C" {
    /// Compares `len` bytes in a time that depends on `len` alone: 0 if they are equal, else -1.
    pub fn sodium_memcmp(one: *const c_void, other: *const c_void, len: usize) -> c_int;

    /// Writes the BLAKE2b hash, of `out_len` bytes, of `len` bytes under a key of `key_len` bytes.
    pub fn crypto_generichash(
        out: *mut u8,
        out_len: usize,
        bytes: *const u8,
        len: c_ulonglong,
        key: *const u8,
        key_len: usize,
    ) -> c_int;

    /// Writes the public key, of 32 bytes, of a secret one.
    pub fn crypto_scalarmult_curve25519_base(public: *mut u8, secret: *const u8) -> c_int;
}
