//! The fuzzer's seed corpus, in `tests/corpus`.

use bytes::Bytes;
use gt_ir::message::Message;
use gt_net::codec::{decode, encode};

use crate::samples::messages;

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
        if let Ok(message) = decode(&frames) {
            decode(&encode(&message)).unwrap();
            messages += 1;
        }
    }
    assert!(messages >= 8, "the corpus holds valid messages, too: {messages}");
}

/// Writes a valid message of each kind into the corpus, for the fuzzer to start from.
#[test]
fn the_corpus_has_a_message_of_each_kind() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus");
    for (number, message) in messages().into_iter().enumerate() {
        let message = match message {
            // All operations together are too long for a seed.
            Message::Stream(commands) => {
                Message::Stream(commands.into_iter().rev().take(12).collect())
            }
            Message::Work { lane, commands } => {
                Message::Work { lane, commands: commands.into_iter().rev().take(12).collect() }
            }
            other => other,
        };
        let frames = encode(&message);
        if frames.len() == 1 {
            let seed = [&[0][..], &frames[0]].concat();
            let path = format!("{folder}/seed-{number}");
            if std::env::var_os("GT_WRITE_CORPUS").is_some() {
                std::fs::create_dir_all(folder).unwrap();
                std::fs::write(&path, &seed).unwrap();
            }
            assert_eq!(std::fs::read(&path).unwrap(), seed, "{path}: GT_WRITE_CORPUS=1 writes it");
        }
    }
}
