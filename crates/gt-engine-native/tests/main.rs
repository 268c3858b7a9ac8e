//! Tests of the native engine through its public interface, in one binary.

mod contract;
mod operations;
mod programs;
