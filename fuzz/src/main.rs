//! Feeds GT whatever libFuzzer comes up with.
//!
//! - The decoder must give a message or an error, and what it gives must survive being written and
//!   read again.
//! - A client sends what the bytes come to, as commands whose fields were changed, to a dispatcher
//!   with workers and a healthy client, which must not notice: see [`gt_sim::hostile`]. The tests of
//!   gt-sim do the same for the bytes of some hundred seeds.
//! - A journal is read up to its damage, and its sessions go on or not: see [`gt_sim::journal`].
//!
//! `make fuzz` runs it for a minute on the corpus in `crates/gt-net/tests/corpus`.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // The first byte says where the data frame begins.
    let Some((&cut, rest)) = data.split_first() else { return };
    let (head, tail) = rest.split_at(rest.len().saturating_sub(usize::from(cut)));
    let mut frames = vec![Bytes::copy_from_slice(head)];
    if !tail.is_empty() {
        frames.push(Bytes::copy_from_slice(tail));
    }
    if let Ok(again) = gt_net::codec::recode(&frames) {
        gt_net::codec::recode(&again).expect("it was a message");
    }
    let _ = gt_journal::segment::read(&frames[0], 0);
    gt_sim::journal::replay(data);
    if std::env::var_os("GT_FUZZ_DECODERS").is_none() {
        gt_sim::hostile::attack(data);
    }
});
