//! The dispatcher seen from outside: one program, which is linked once.

mod bad_batches;
mod bad_input;
mod common;
mod entitlements;
mod quotas;
mod rewrites;
mod streams;
mod watching;
