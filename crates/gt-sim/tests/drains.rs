//! Drains: workers that are to end hand over what they have, and sessions lose nothing.

use gt_sim::deaths;

/// A loop on random numbers has the bits of an undisturbed one while workers are drained, one after
/// the other or at once, with and without folders for their state.
#[test]
fn drained_workers_cost_no_bit() {
    let drained: u64 = (0..300)
        .map(|seed| deaths::run_drains(seed).unwrap_or_else(|wrong| panic!("{wrong}")))
        .sum();
    assert!(drained > 150, "{drained}");
}
