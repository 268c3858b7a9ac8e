//! Peers of other versions: the messages of each release, kept as they were on the wire, in
//! `tests/released`: a line for each, with its name and its bytes.

use std::fmt::Write;

use bytes::Bytes;
use gt_ir::message::{Goodbye, Hello, Kind, PROTOCOL_VERSION, Protocol};
use gt_net::codec::{DecodeError, decode, encode, recode};

use crate::corpus::{expect_file, short_samples};
use crate::samples::Sample;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/released");
const OWN: &str = env!("CARGO_PKG_VERSION");

/// The file of this version is written anew until it is released. A later change of a message
/// needs another version, and another [`PROTOCOL_VERSION`].
#[test]
fn the_messages_of_this_version_are_kept() {
    let mut lines = String::new();
    for Sample { name, frames } in short_samples() {
        write!(lines, "{name} ").unwrap();
        frames[0].iter().for_each(|byte| write!(lines, "{byte:02x}").unwrap());
        lines.push('\n');
    }
    expect_file(&format!("{FOLDER}/{OWN}.txt"), lines.as_bytes());
}

/// Each version reads who says hello in any other version, and why any other says goodbye. All
/// messages of releases with the same protocol are read.
#[test]
fn every_release_is_understood_or_told_which_side_to_upgrade() {
    for file in std::fs::read_dir(FOLDER).unwrap() {
        let path = file.unwrap().path();
        let release = path.file_stem().unwrap().to_str().unwrap().to_string();
        let text = std::fs::read_to_string(&path).unwrap();
        let (mut hellos, mut goodbyes) = (0, 0);
        // The first line is a hello, which says the protocol.
        let protocol = decode::<Hello>(&text.lines().map(message).next().unwrap().1);
        let is_read = !matches!(protocol, Err(DecodeError::OtherProtocol(_)));
        for (name, frames) in text.lines().map(message) {
            if name.starts_with("hello") {
                hellos += 1;
                match decode::<Hello>(&frames) {
                    Ok(_) => {}
                    Err(DecodeError::OtherProtocol(stranger)) => {
                        assert_eq!(stranger.protocol.release, release);
                        assert!(stranger.refusal("server").contains("is older: install gt"));
                    }
                    Err(error) => panic!("{name} of {release}: {error}"),
                }
            } else if name.starts_with("goodbye") {
                goodbyes += 1;
                decode::<Goodbye>(&frames).unwrap();
            }
            if is_read {
                assert_eq!(recode(&frames).unwrap(), frames, "{name} of {release}");
            }
        }
        assert!(hellos >= 4 && goodbyes >= 1, "{}", path.display());
    }
}

fn message(line: &str) -> (&str, Vec<Bytes>) {
    let (name, digits) = line.split_once(' ').unwrap();
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (name, vec![(0..digits.len()).step_by(2).map(byte).collect()])
}

/// A hello of another protocol, whatever follows it in whatever layout.
#[test]
fn a_hello_of_another_version_is_told_which_side_is_older() {
    let samples = short_samples();
    let hello = &samples.iter().find(|sample| sample.name.starts_with("hello")).unwrap().frames[0];
    for (version, older) in [(PROTOCOL_VERSION + 1, "server"), (PROTOCOL_VERSION - 1, "client")] {
        for layout in [hello[2], hello[2] + 1] {
            let mut head = hello.to_vec();
            head[2] = layout;
            head[4..8].copy_from_slice(&version.to_le_bytes());
            // The first letter of the release.
            head[17] = b'9';
            head.extend_from_slice(b"a field that this version does not have");
            let error = decode::<Hello>(&[head.into()]).unwrap_err();
            let DecodeError::OtherProtocol(stranger) = error else { panic!("{error}") };
            let refusal = stranger.refusal("server");
            assert!(refusal.contains(&format!("the {older} is older")), "{refusal}");
        }
    }
    // With another layout, the goodbye of such a peer is read, and nothing else.
    let with_other_layout = |frames: Vec<Bytes>| {
        let mut head = frames[0].to_vec();
        head[2] += 1;
        vec![Bytes::from(head)]
    };
    let goodbye = Goodbye { reason: "the server is older".into() };
    assert_eq!(decode::<Goodbye>(&with_other_layout(encode(&goodbye))), Ok(goodbye));
    for Sample { name, frames } in samples {
        let kind = Kind::of(frames[0][3]).unwrap();
        let read = recode(&with_other_layout(frames));
        assert_eq!(read.is_ok(), kind == Kind::Goodbye, "{name}");
    }
}

/// The same release from changed sources is another build.
#[test]
fn another_instruction_set_is_another_build() {
    let other = Protocol { schema: !Protocol::current().schema, ..Protocol::current() };
    assert!(!other.matches(&Protocol::current()));
    let next = Protocol { release: "0.1.99".into(), ..Protocol::current() };
    assert!(next.matches(&Protocol::current()), "releases with the same protocol work together");
}
