//! Tests of the client's public API, linked as one program.

mod hotpath;
mod methods;
