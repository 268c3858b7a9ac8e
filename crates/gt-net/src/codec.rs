//! Messages as frames.
//!
//! The first frame holds the records: magic, layout, then the message as its records describe it
//! ([`gt_ir::wire`]). Large tensor data follows in frames of its own. Decoding checks everything: any
//! bytes give a message or an error.

use bytes::Bytes;
use gt_ir::message::Message;
use gt_ir::wire::{Frames, Record, Sink, Source};

pub use gt_ir::wire::{DATA_FRAME, DecodeError};

const MAGIC: [u8; 2] = *b"GT";
/// The version of this layout.
const LAYOUT: u8 = 2;

/// The most frames that a message may have.
pub const MAX_FRAMES: usize = 4096;

/// The frames of a message.
pub fn encode(message: &Message) -> Vec<Bytes> {
    let mut frames = Frames::default();
    frames.bytes(&MAGIC);
    frames.byte(LAYOUT);
    message.write(&mut frames);
    let mut all = vec![Bytes::from(frames.head)];
    all.append(&mut frames.data);
    all
}

/// The message of some frames.
///
/// # Errors
/// Anything that [`encode`] would not have made.
pub fn decode(frames: &[Bytes]) -> Result<Message, DecodeError> {
    let (head, data) = frames.split_first().ok_or(DecodeError::BadMagic)?;
    let mut source = Source::new(head, data);
    if source.array()? != MAGIC {
        return Err(DecodeError::BadMagic);
    }
    let layout = source.byte()?;
    if layout != LAYOUT {
        return Err(DecodeError::BadLayout(layout));
    }
    let message = Message::read(&mut source)?;
    source.finish()?;
    Ok(message)
}
