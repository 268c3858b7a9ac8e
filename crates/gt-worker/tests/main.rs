//! The worker seen from outside: one program, which is linked once.

mod check;
mod common;
mod exchanges;
mod executor;
mod gangs;
mod iterations;
mod joints;
mod memory;
mod sharing;
mod unwanted;
mod warmth;
