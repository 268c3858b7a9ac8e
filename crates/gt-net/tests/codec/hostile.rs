//! Frames that no encoder wrote: truncated, forged, damaged or random. Each decodes to a message or
//! an error, never a panic.

use bytes::Bytes;
use gt_ir::message::{ClientToServer, Kind, ServerToWorker, WatcherToServer};
use gt_ir::{ClientCommand, Create, SourceId, TensorId};
use gt_net::codec::{DecodeError, decode, decode_frame, encode, recode};
use proptest::prelude::*;
use std::sync::OnceLock;

use crate::samples::{Sample, data, samples};

/// A frame that is truncated anywhere is an error, and so is one with bytes appended.
#[test]
fn cut_frames_are_errors() {
    for Sample { frames, .. } in samples() {
        let head = &frames[0];
        for length in (0..head.len()).step_by(head.len().div_ceil(2000)) {
            let mut cut = frames.clone();
            cut[0] = head.slice(..length);
            assert!(recode(&cut).is_err(), "{length} of {}", head.len());
        }
        let longer = [&head[..], &[0]].concat();
        assert!(recode(&[&[Bytes::from(longer)], &frames[1..]].concat()).is_err());
        assert!(recode(&[&frames[..], &[Bytes::from_static(b"x")]].concat()).is_err());
    }
}

/// A message that travels in another direction than its type is an error, whatever its bytes.
#[test]
fn a_message_of_another_kind_is_an_error() {
    let stream = encode(&ClientToServer::Stream(Vec::new()));
    assert!(decode_frame::<ClientToServer>(&stream).is_ok());
    let got = Kind::ClientToServer;
    let refused = decode_frame::<WatcherToServer>(&stream);
    assert_eq!(refused, Err(DecodeError::WrongKind { wanted: Kind::WatcherToServer, got }));
    let refused = decode_frame::<ServerToWorker>(&stream);
    assert_eq!(refused, Err(DecodeError::WrongKind { wanted: Kind::ServerToWorker, got }));
    for Sample { name, frames } in samples() {
        let kind = frames[0][3];
        for other in Kind::ALL.into_iter().filter(|other| *other as u8 != kind) {
            let mut head = frames[0].to_vec();
            head[3] = other as u8;
            // Records of other kinds may be shorter or longer, but nothing panics.
            let _ = recode(&[&[Bytes::from(head)], &frames[1..]].concat());
        }
        assert_eq!(recode(&frames).unwrap(), frames, "{name}");
    }
}

/// A forged count or length must not make the reader allocate for it.
#[test]
fn forged_counts_take_no_memory() {
    for field in 0..6 {
        let create =
            Create { output: TensorId(1), content: data(5000), signal: 0, source: SourceId(0) };
        let stream = ClientToServer::Stream(vec![ClientCommand::Create(create)]);
        let mut head = encode(&stream)[0].to_vec();
        let at = 5 + field;
        let end = (at + 4).min(head.len());
        head[at..end].fill(0xFF);
        assert!(decode::<ClientToServer>(&[Bytes::from(head)]).is_err());
    }
}

static SAMPLES: OnceLock<Vec<Sample>> = OnceLock::new();

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes_give_a_message_or_an_error(head in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = recode(&[Bytes::from(head.clone())]);
        // A valid prefix reaches more of the decoder.
        for kind in Kind::ALL {
            for variant in 0..18u8 {
                let framed = [b"GT\x03", &[kind as u8, variant][..], &head].concat();
                let _ = recode(&[Bytes::from(framed)]);
            }
        }
    }

    #[test]
    fn damaged_messages_give_a_message_or_an_error(
        which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), value in any::<u8>()
    ) {
        let all = SAMPLES.get_or_init(samples);
        let mut frames = which.get(all).frames.clone();
        let mut head = frames[0].to_vec();
        let at = at.index(head.len());
        head[at] = value;
        frames[0] = Bytes::from(head);
        if let Ok(again) = recode(&frames) {
            // Every decoded message can be encoded and decoded again; NaN is not equal to itself.
            prop_assert!(recode(&again).is_ok());
        }
    }
}
