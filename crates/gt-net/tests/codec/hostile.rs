//! Frames that no encoder wrote: truncated, forged, damaged or random. Each decodes to a message or
//! an error, never a panic.

use bytes::Bytes;
use gt_ir::message::Message;
use gt_ir::{ClientCommand, Create, SourceId, TensorId};
use gt_net::codec::{decode, encode};
use proptest::prelude::*;

use crate::samples::{data, messages};

/// A frame that is truncated anywhere is an error, and so is one with bytes appended.
#[test]
fn cut_frames_are_errors() {
    for message in messages() {
        let frames = encode(&message);
        let head = &frames[0];
        for length in (0..head.len()).step_by(head.len().div_ceil(2000)) {
            let mut cut = frames.clone();
            cut[0] = head.slice(..length);
            assert!(decode(&cut).is_err(), "{length} of {}", head.len());
        }
        let longer = [&head[..], &[0]].concat();
        assert!(decode(&[&[Bytes::from(longer)], &frames[1..]].concat()).is_err());
        assert!(decode(&[&frames[..], &[Bytes::from_static(b"x")]].concat()).is_err());
    }
}

/// A forged count or length must not make the reader allocate for it.
#[test]
fn forged_counts_take_no_memory() {
    for field in 0..6 {
        let create =
            Create { output: TensorId(1), content: data(5000), signal: 0, source: SourceId(0) };
        let stream = Message::Stream(vec![ClientCommand::Create(create)]);
        let mut head = encode(&stream)[0].to_vec();
        let at = 4 + field;
        let end = (at + 4).min(head.len());
        head[at..end].fill(0xFF);
        assert!(decode(&[Bytes::from(head)]).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes_give_a_message_or_an_error(head in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&[Bytes::from(head.clone())]);
        // A valid prefix reaches more of the decoder.
        for kind in 1..29u8 {
            let framed = [b"GT\x02", &[kind][..], &head].concat();
            let _ = decode(&[Bytes::from(framed)]);
        }
    }

    #[test]
    fn damaged_messages_give_a_message_or_an_error(
        which in 0usize..30, at in any::<prop::sample::Index>(), value in any::<u8>()
    ) {
        let mut frames = encode(&messages()[which]);
        let mut head = frames[0].to_vec();
        let at = at.index(head.len());
        head[at] = value;
        frames[0] = Bytes::from(head);
        if let Ok(message) = decode(&frames) {
            // Every decoded message can be encoded and decoded again; NaN is not equal to itself.
            prop_assert!(decode(&encode(&message)).is_ok());
        }
    }
}
