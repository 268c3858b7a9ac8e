//! What the ends of a link say about the link itself.

use super::{Message, kinds};
use crate::record;

/// The sender has received this many messages of the link, and of the links that it resumes. Only
/// clients' links count messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Acknowledge {
    pub received: u64,
}

record!(struct Acknowledge { received });

/// The end of the link, with the reason. Its encoding never changes: see [`super::protocol`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Goodbye {
    pub reason: String,
}

record!(struct Goodbye { reason });

kinds!(Acknowledge, Goodbye);

/// What arrives on a link once its handshake is complete: see [`crate::codec::decode_frame`].
#[derive(Clone, PartialEq, Debug)]
pub enum Frame<M: Message> {
    Message(M),
    Goodbye(Goodbye),
}
