//! The numbers by which clients, the server and workers name sessions, workers and what they host.

use std::fmt;

use crate::record;

/// Defines a number as a type of its own.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident($number:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub struct $name(pub $number);

        record!(struct $name(number));

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

id! {
    /// Identifies a worker; never reused.
    WorkerId(u32)
}

id! {
    /// Identifies a session; never reused. Users see it, as the number in `ada#3`.
    SessionId(u32)
}

impl SessionId {
    /// No session: of events that belong to none.
    pub const NONE: SessionId = SessionId(0);
}

impl Default for SessionId {
    fn default() -> SessionId {
        SessionId::NONE
    }
}

id! {
    /// Identifies the lanes of a session: all of them end and others begin when the session is
    /// restored. Never reused; later ones have higher numbers.
    Incarnation(u32)
}

impl Incarnation {
    /// No incarnation: of events that belong to no session.
    pub const NONE: Incarnation = Incarnation(0);
}

id! {
    /// A slot of a session, hosted by a worker. Plans name slots: when a worker is lost, its slots
    /// move to others, and plans do not change.
    SlotId(u32)
}

/// A session's slot on a worker, with its own tensors and queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct LaneId {
    pub incarnation: Incarnation,
    pub slot: SlotId,
}

record!(struct LaneId { incarnation, slot });

impl LaneId {
    /// Returns the first lane of a session.
    pub fn first(incarnation: Incarnation) -> LaneId {
        LaneId { incarnation, slot: SlotId(0) }
    }
}

id! {
    /// Identifies an exchange of a session; slots begin exchanges in this order.
    TransferId(u64)
}
