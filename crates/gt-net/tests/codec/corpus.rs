//! The fuzzer's seed corpus, in `tests/corpus`.

use std::path::Path;

use bytes::Bytes;
use gt_ir::message::{ClientToServer, ServerToWorker};
use gt_net::codec::{encode, recode};

use crate::samples::{LANE, Sample, client_commands, samples, worker_commands};

/// Inputs that the fuzzer has kept; the first byte is the offset of the data frame.
#[test]
fn the_corpus_gives_messages_or_errors() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus");
    let mut messages = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let data = std::fs::read(entry.unwrap().path()).unwrap();
        let Some((&cut, rest)) = data.split_first() else { continue };
        let (head, tail) = rest.split_at(rest.len().saturating_sub(usize::from(cut)));
        let mut frames = vec![Bytes::copy_from_slice(head)];
        if !tail.is_empty() {
            frames.push(Bytes::copy_from_slice(tail));
        }
        if let Ok(again) = recode(&frames) {
            recode(&again).unwrap();
            messages += 1;
        }
    }
    assert!(messages >= 8, "the corpus holds valid messages, too: {messages}");
}

/// Writes a valid message of each variant into the corpus, for the fuzzer to start from.
#[test]
fn the_corpus_has_a_message_of_each_variant() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus");
    for Sample { name, frames } in short_samples() {
        let seed = [&[0][..], &frames[0]].concat();
        expect_file(&format!("{folder}/{name}"), &seed);
    }
}

/// Returns samples of one frame; the streams of all operations are cut short.
pub fn short_samples() -> Vec<Sample> {
    let mut all = samples();
    for Sample { name, frames } in &mut all {
        if name == "client_to_server-stream" {
            let commands = client_commands().into_iter().rev().take(12).collect();
            *frames = encode(&ClientToServer::Stream(commands));
        } else if name == "server_to_worker-work" {
            let commands = worker_commands().into_iter().rev().take(12).collect();
            *frames = encode(&ServerToWorker::Work { lane: LANE, commands });
        }
    }
    all.retain(|sample| sample.frames.len() == 1);
    all
}

/// Compares a file with what it is to hold, or writes it if `GT_WRITE_CORPUS` is set.
pub fn expect_file(path: &str, expected: &[u8]) {
    if std::env::var_os("GT_WRITE_CORPUS").is_some() {
        std::fs::create_dir_all(Path::new(path).parent().unwrap()).unwrap();
        std::fs::write(path, expected).unwrap();
    }
    assert!(std::fs::read(path).unwrap() == expected, "{path}: GT_WRITE_CORPUS=1 writes it");
}
