//! The worker seen from outside: one program, which is linked once.

mod anticipation;
mod check;
mod collectives;
mod common;
mod coscheduling;
mod exchanges;
mod executor;
mod iterations;
mod memory;
mod preemption;
mod publication_memory;
mod publications;
mod sharing;
mod unwanted;
mod warmth;
