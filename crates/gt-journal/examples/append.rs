//! Measures how many instructions a second a journal takes, in records of batches.
//!
//! `cargo run --release -p gt-journal --example append`

use std::time::{Duration, Instant};

use bytes::Bytes;
use gt_journal::{Folder, JournalWriter};

/// A batch of small instructions, as clients send them: how many, and the bytes of each.
const BATCH: (usize, usize) = (512, 24);
const RECORDS: usize = 40_000;

fn main() {
    let place = tempfile::tempdir_in(".").expect("a folder can be made here");
    let (folder, _) = Folder::open(place.path(), 0).expect("it is empty");
    let encode = |record: &Bytes| vec![record.clone()];
    let mut writer = JournalWriter::start(folder, encode, || ()).expect("a thread starts");
    let begin = writer.replace(Vec::new());
    assert!(writer.wait(begin, Duration::from_secs(10)));
    let batch = Bytes::from(vec![7; BATCH.0 * BATCH.1]);
    let start = Instant::now();
    let mut last = 0;
    for _ in 0..RECORDS {
        last = writer.append(batch.clone());
    }
    assert!(writer.wait(last, Duration::from_secs(600)), "the disk is too slow");
    let seconds = start.elapsed().as_secs_f64();
    let (instructions, bytes) = (RECORDS * BATCH.0, RECORDS * BATCH.0 * BATCH.1);
    println!(
        "The journal takes {:.1} M instructions a second ({:.0} MB/s), made durable in groups.",
        instructions as f64 / seconds / 1e6,
        bytes as f64 / seconds / 1e6
    );
}
