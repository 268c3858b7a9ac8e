//! The native engine seen from outside: one program, which is linked once.

mod contract;
mod operations;
mod programs;
