//! The comparison of compiled code with its operations: honest code passes, broken code does not.

mod engine;
mod faults;
mod honest;
mod operations;
#[path = "../../../gt-engine-native/tests/programs/random.rs"]
mod random;
