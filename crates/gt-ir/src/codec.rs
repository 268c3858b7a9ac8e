//! The encoding of messages as frames.
//!
//! The first frame has a magic number, the layout version and the message's record
//! ([`crate::wire`]). Large tensor data follows in separate frames. Decoding checks everything: any
//! bytes decode to a message or an error.

use crate::message::Message;
use crate::wire::{Frames, Record, Sink, Source};
use bytes::Bytes;

pub use crate::wire::DecodeError;

const MAGIC: [u8; 2] = *b"GT";
/// The version of this layout.
const LAYOUT: u8 = 2;

/// The most frames of a message.
pub const MAX_FRAMES: usize = 4096;

/// Encodes a message as frames.
pub fn encode(message: &Message) -> Vec<Bytes> {
    let mut frames = Frames::default();
    frames.bytes(&MAGIC);
    frames.byte(LAYOUT);
    message.write(&mut frames);
    let mut all = vec![Bytes::from(frames.head)];
    all.append(&mut frames.data);
    all
}

/// Decodes a message from its frames.
///
/// # Errors
/// The frames are not what [`encode`] produces.
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
