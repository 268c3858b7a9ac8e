//! Tests of the dispatcher's public API, in one program that is linked once.

mod attachment;
mod bad_batches;
mod bad_input;
mod cluster_events;
mod common;
mod drains;
mod entitlements;
mod inspections;
mod operators;
mod publications;
mod quotas;
mod relays;
mod rewrites;
mod streams;
mod watching;
