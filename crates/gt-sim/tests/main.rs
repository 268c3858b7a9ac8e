//! Tests of simulated clusters, in one program that is linked once.

mod chains;
mod chaos;
mod cluster;
mod common;
mod drains;
mod engine_collectives;
mod hostile;
mod hotpaths;
mod journal;
mod memory;
mod mixes;
mod movement;
mod programs;
mod sharding;
mod walk;
mod windows;
