//! Who pauses sessions.

/// Who has paused a session. Operators resume all, users what they have paused themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PausedBy {
    Operator,
    User,
}

impl PausedBy {
    /// Returns who that is, for people.
    pub fn name(self) -> &'static str {
        match self {
            PausedBy::Operator => "an operator",
            PausedBy::User => "its user",
        }
    }
}
