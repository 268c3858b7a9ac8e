//! Messages as frames.
//!
//! The first frame holds the records: magic, version, kind, then the fields in order. Large
//! tensor data follows in frames of its own. Decoding checks everything: any bytes give a message
//! or an error. Recursion and unbounded counts do not occur.
//!
//! - [`encode`], [`decode`]: messages and commands; [`events`], [`exchange`], [`explain`],
//!   [`template`], [`script`], [`stats`]: rarer records.

mod decode;
mod encode;
mod events;
mod exchange;
mod explain;
mod script;
mod stats;
mod template;

use bytes::Bytes;
use gt_ir::message::Message;

use crate::wire::{Reader, Writer};
use decode::Decoder;
use encode::Encoder;

pub use crate::wire::DecodeError;

const MAGIC: u16 = u16::from_le_bytes(*b"GT");
/// The version of this layout.
const LAYOUT: u8 = 1;

/// Data up to this length stands in the first frame, among the records.
const INLINE: usize = 4096;
/// Longer data is cut into frames of this length.
pub const DATA_FRAME: usize = 32 << 20;
/// The most frames that a message may have.
pub const MAX_FRAMES: usize = 4096;

type Result<T> = std::result::Result<T, DecodeError>;

/// The frames of a message.
pub fn encode(message: &Message) -> Vec<Bytes> {
    let mut encoder = Encoder { head: Writer::default(), data: Vec::new(), last: 0 };
    encoder.head.u16(MAGIC);
    encoder.head.u8(LAYOUT);
    encoder.message(message);
    let mut frames = vec![Bytes::from(encoder.head.bytes)];
    frames.append(&mut encoder.data);
    frames
}

/// The message of some frames.
///
/// # Errors
/// Anything that [`encode`] would not have made.
pub fn decode(frames: &[Bytes]) -> Result<Message> {
    let (head, data) = frames.split_first().ok_or(DecodeError::BadMagic)?;
    let mut decoder = Decoder { head: Reader::new(head), data, last: 0 };
    if decoder.head.u16()? != MAGIC {
        return Err(DecodeError::BadMagic);
    }
    let layout = decoder.head.u8()?;
    if layout != LAYOUT {
        return Err(DecodeError::BadLayout(layout));
    }
    let message = decoder.message()?;
    decoder.head.finish()?;
    if !decoder.data.is_empty() {
        return Err(DecodeError::Long { left: decoder.data.iter().map(Bytes::len).sum() });
    }
    Ok(message)
}
