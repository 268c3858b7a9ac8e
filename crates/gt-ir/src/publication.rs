//! Publications: tensors that one session publishes, and that others read without a copy.
//!
//! A publication is stored like the snapshot of a session that computes nothing: its number is that
//! of a session, its values belong to slots, and workers store them beside the snapshots.

use std::fmt;

use crate::ids::SessionId;
use crate::record;

/// Publications have numbers from this one on; sessions have lower ones.
pub const FIRST_PUBLICATION: u32 = 1 << 31;

/// Returns whether a number is that of a publication.
pub fn is_publication(number: SessionId) -> bool {
    number.0 >= FIRST_PUBLICATION
}

/// The number of the only snapshot of a publication.
pub const PUBLISHED: u64 = u64::MAX;

/// Who may read a publication, besides its owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Audience {
    /// The users of the owner's team.
    Team,
    All,
    Users(Vec<String>),
}

record!(enum Audience { 0 => Team, 1 => All, 2 => Users(users) });

impl fmt::Display for Audience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Audience::Team => f.write_str("team"),
            Audience::All => f.write_str("all"),
            Audience::Users(users) => f.write_str(&users.join(", ")),
        }
    }
}

/// A version of a publication, as lists show it.
#[derive(Clone, PartialEq, Debug)]
pub struct PublicationStatus {
    /// The name, with that of the user: `user/name`.
    pub name: String,
    pub version: u32,
    pub audience: Audience,
    pub description: String,
    /// When it was published, in seconds since 1970.
    pub at: u64,
    pub tensors: u64,
    /// The bytes of its tensors, each counted once.
    pub bytes: u64,
    /// The number of sessions that read it.
    pub readers: u32,
    /// Whether it can be read: its values are stored, with their copies.
    pub is_visible: bool,
    /// Whether it was withdrawn, and stays for those that read it.
    pub is_withdrawn: bool,
}

record!(struct PublicationStatus {
    name, version, audience, description, at, tensors, bytes, readers, is_visible, is_withdrawn,
});
