//! Fuzzing: journals that are damaged, or have records that no dispatcher has written.
//!
//! Bytes, from a file or a fuzzer, encode records: for each its length (two bytes), the length of
//! the data at its end (one byte), and its contents. They are written as a segment, which must be
//! read back as written, and with a byte changed or its end truncated, up to the damage. A
//! dispatcher then adopts the sessions that the records describe, or must return an error.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use gt_dispatcher::{Dispatcher, History, JournalRecord, Limits, LineageLimits, PeerId};
use gt_ir::message::{Hello, Resume, WorkerHello};
use gt_journal::segment::{read, write_header, write_record};

use crate::chance::Chance;

/// The schema in the header of these segments.
const SCHEMA: u64 = 0x6774;

/// Reads the journal that these bytes encode. Returns the number of adopted sessions.
///
/// # Panics
/// The segment is not read as specified.
pub fn replay(bytes: &[u8]) -> usize {
    let records = records(bytes);
    let mut segment = Vec::new();
    write_header(SCHEMA, &mut segment).expect("memory takes all");
    let mut ends = vec![segment.len()];
    for record in &records {
        write_record(record, &mut segment).expect("memory takes all");
        ends.push(segment.len());
    }
    check_damage(&segment, &records, &ends, &mut Chance::new(sum(bytes)));
    let whole = read(&Bytes::from(segment), SCHEMA).expect("it was just written");
    assert!(whole.damage.is_none() && whole.records == records, "it is as it was written");
    adopt(&whole.records)
}

/// Returns the bytes from which [`replay`] makes these records.
pub fn bytes_of(records: &[JournalRecord]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in records {
        let frames = record.encode();
        let (head, data) = frames.split_first().expect("each has a head");
        let data: Vec<u8> = data.concat();
        let length = u16::try_from(head.len() + data.len()).expect("it is small");
        let cut = u8::try_from(data.len()).expect("its data is small");
        bytes.extend(length.to_le_bytes());
        bytes.push(cut);
        bytes.extend_from_slice(head);
        bytes.extend(data);
    }
    bytes
}

fn records(mut bytes: &[u8]) -> Vec<Vec<Bytes>> {
    let mut records = Vec::new();
    while let [low, high, cut, rest @ ..] = bytes {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (contents, others) = rest.split_at(length);
        let (head, data) = contents.split_at(length - usize::from(*cut).min(length));
        let mut frames = vec![Bytes::copy_from_slice(head)];
        if !data.is_empty() {
            frames.push(Bytes::copy_from_slice(data));
        }
        records.push(frames);
        bytes = others;
    }
    records
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)))
}

/// A damaged segment yields all records up to the damage.
fn check_damage(segment: &[u8], records: &[Vec<Bytes>], ends: &[usize], chance: &mut Chance) {
    let place = chance.below(segment.len() as u64) as usize;
    let before = ends.iter().filter(|end| **end <= place).count();
    let mut changed = segment.to_vec();
    changed[place] ^= 1 << chance.below(8);
    for (damaged, is_cut) in [(changed, false), (segment[..place].to_vec(), true)] {
        let found = match read(&Bytes::from(damaged), SCHEMA) {
            Ok(found) => found,
            Err(_) => {
                assert!(before == 0, "the header is whole");
                continue;
            }
        };
        assert!(before > 0, "the header is damaged");
        let kept = before - 1;
        assert_eq!(found.records, records[..kept], "all before the damage, and nothing else");
        // Truncation between two records is not damage.
        assert_eq!(found.damage.is_some(), !is_cut || ends[kept] != place);
    }
}

/// A dispatcher adopts the sessions of records; returns their number.
fn adopt(records: &[Vec<Bytes>]) -> usize {
    let (mut history, mut workers) = (History::default(), BTreeMap::new());
    for frames in records {
        // Bytes that do not decode to a record end a journal.
        let Ok(record) = JournalRecord::decode(frames) else { break };
        let again = JournalRecord::decode(&record.encode());
        history.add(again.expect("it was a record"));
        if let JournalRecord::Worker { token, name, .. } = record {
            workers.insert(token, name);
        }
    }
    let lineage = Some(LineageLimits::default());
    let limits = Limits { lineage, ..Limits::default() };
    let mut dispatcher = Dispatcher::new(String::new(), limits, None);
    dispatcher.expect_workers(Duration::ZERO, &mut history);
    let mut taken = Vec::new();
    for (peer, session) in (1..).map(PeerId::client).zip(history.take_sessions()) {
        if dispatcher.adopt(Duration::ZERO, peer, session).is_ok() {
            taken.push(peer);
        }
    }
    for (peer, (token, name)) in (1..).map(PeerId::worker).zip(workers) {
        let hello = WorkerHello { token: Some(token), ..WorkerHello::new(&name) };
        dispatcher.handle(Duration::ZERO, peer, Hello::Worker(hello));
    }
    for peer in &taken {
        dispatcher.client_returned(Duration::ZERO, *peer, &Resume::default());
    }
    let mut out = Vec::new();
    for seconds in 0..20 {
        dispatcher.tick(Duration::from_secs(seconds));
        dispatcher.take_outbox(&mut out);
    }
    taken.len()
}
