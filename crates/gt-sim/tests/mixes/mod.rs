//! Mixes of sessions that share workers in virtual time.

mod askers;
mod one_worker;
mod sharded;

use std::ops::Range;

/// The seeds that are tried: a few, or as many as a campaign says.
fn seeds() -> Range<u64> {
    let count = std::env::var("GT_MIXES").ok().and_then(|count| count.parse().ok());
    0..count.unwrap_or(5)
}
