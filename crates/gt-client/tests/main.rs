//! The client seen from outside: one program, which is linked once.

mod hotpath;
mod methods;
