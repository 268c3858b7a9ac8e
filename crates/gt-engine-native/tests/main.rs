//! Tests of the native engine through its public interface, in one binary.

mod calls;
mod contract;
mod operations;
mod pausable;
mod programs;
