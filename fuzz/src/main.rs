//! Feeds the decoder whatever libFuzzer comes up with: it must give a message or an error, and
//! what it gives must survive being written and read again.
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
    if let Ok(message) = gt_net::codec::decode(&frames) {
        gt_net::codec::decode(&gt_net::codec::encode(&message)).expect("it was a message");
    }
});
