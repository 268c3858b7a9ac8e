//! The versions of publications: none is assigned twice, also after the publication has ended.

use std::collections::BTreeMap;

use gt_ir::{RequestId, SessionId};

/// The versions that were assigned.
#[derive(Default)]
pub(crate) struct Versions {
    /// The last version of each name, by user and name.
    last: BTreeMap<(String, String), u32>,
    /// The versions of what was being stored when the server ended, by session and request: if the
    /// session publishes it once more, it has the same version.
    begun: BTreeMap<(SessionId, RequestId), u32>,
}

impl Versions {
    /// Returns the version of a new publication of a session's request.
    pub fn next(&mut self, user: &str, name: &str, origin: (SessionId, RequestId)) -> u32 {
        if let Some(version) = self.begun.remove(&origin) {
            return version;
        }
        let last = self.last.entry((user.into(), name.into())).or_default();
        *last += 1;
        *last
    }

    /// Notes a version of a journal; `origin` is its session and request if it may be published once
    /// more.
    pub fn note(
        &mut self,
        (user, name, version): (&str, &str, u32),
        origin: Option<(SessionId, RequestId)>,
    ) {
        let last = self.last.entry((user.into(), name.into())).or_default();
        *last = version.max(*last);
        if let Some(origin) = origin {
            self.begun.insert(origin, version);
        }
    }

    /// Returns whether a user has published under a name.
    pub fn has(&self, user: &str, name: &str) -> bool {
        self.last.contains_key(&(user.to_string(), name.to_string()))
    }

    /// Returns the last version of each name, as user, name and version.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str, u32)> {
        self.last.iter().map(|((user, name), version)| (user.as_str(), name.as_str(), *version))
    }
}
