//! Tests of simulated clusters, in one program that is linked once.

mod chaos;
mod cluster;
mod common;
mod hostile;
mod hotpaths;
mod joint;
mod journal;
mod memory;
mod movement;
mod programs;
mod sharding;
mod walk;
