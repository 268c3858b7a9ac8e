//! Journals that are damaged, or have records that no dispatcher has written: see
//! [`gt_sim::journal`], which `fuzz/` calls, too.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{FAST, randn};
use gt_dispatcher::{Limits, LineageLimits};
use gt_ir::philox::RandomStream;
use gt_sim::journal::{bytes_of, replay};
use gt_sim::{World, driver};

/// Returns the journal of a few sessions, with snapshots if `limit` bytes of log are kept.
fn written(seed: u64, workers: usize, sessions: u64, bytes: u64) -> Vec<u8> {
    let time = Duration::from_secs(5);
    let lineage = Some(LineageLimits { bytes, total: sessions * bytes, time, kept: bytes });
    let limits = Limits { lineage, ..Limits::default() };
    let mut world = World::new(seed, workers, FAST, limits);
    world.keep_journal(limits);
    world.settle();
    let world = Arc::new(Mutex::new(world));
    let sessions: Vec<_> = (0..sessions).map(|_| driver::connect(&world).0).collect();
    for session in &sessions {
        let mut x = randn(session, &[3]);
        for _ in 0..8 {
            x = x.mul(&x).unwrap().add(1.0).unwrap();
            x.sum(&[], false).unwrap().item().unwrap();
        }
    }
    let records = bytes_of(world.lock().unwrap().journal());
    assert!(replay(&records) == sessions.len(), "all of them go on");
    records
}

fn corpus() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../gt-net/tests/corpus"))
}

/// Journals for the fuzzer to start from.
fn seeds() -> Vec<Vec<u8>> {
    let of = |(seed, (workers, sessions, bytes))| written(seed, workers, sessions, bytes);
    let worlds = [(1, 1, 1 << 20), (2, 1, 400), (3, 2, 2_000), (1, 3, 600)];
    (0..).zip(worlds).map(of).collect()
}

#[test]
fn the_corpus_has_journals_whose_sessions_go_on() {
    for (number, seed) in seeds().into_iter().enumerate() {
        let path = corpus().join(format!("journal-{number}"));
        if std::env::var_os("GT_WRITE_CORPUS").is_some() {
            std::fs::write(&path, &seed).unwrap();
        }
        let kept = std::fs::read(&path).unwrap_or_default();
        assert!(replay(&kept) > 0, "{}: GT_WRITE_CORPUS=1 writes it anew", path.display());
    }
}

/// Each byte of a journal is changed, or is the last one.
#[test]
fn no_byte_of_a_journal_can_harm() {
    for (number, seed) in seeds().into_iter().enumerate() {
        let stream = RandomStream::new(number as u64, 0);
        for place in (0..seed.len()).step_by(1 + seed.len() / 400) {
            let mut changed = seed.clone();
            changed[place] = stream.integer(place as u64, 0, 256) as u8;
            replay(&changed);
            replay(&seed[..place]);
        }
    }
}
