//! The publications of a journal.

use std::collections::{BTreeMap, BTreeSet};

use gt_ir::publication::FIRST_PUBLICATION;
use gt_ir::{RequestId, SessionId};

use super::Publication;
use super::versions::Versions;

/// The publications of a journal.
#[derive(Default)]
pub(crate) struct StoredPublications {
    pub publications: BTreeMap<SessionId, Publication>,
    /// The requests of sessions whose publications have ended.
    pub ended: BTreeMap<SessionId, BTreeSet<RequestId>>,
    pub versions: Versions,
    /// The last number assigned.
    pub last: u32,
}

impl StoredPublications {
    pub fn add(&mut self, publication: Publication) {
        self.note(publication.id);
        let Publication { user, name, version, .. } = &publication;
        self.versions.note((user, name, *version), None);
        self.publications.insert(publication.id, publication);
    }

    /// Removes a publication; `origin` is the living session that published it, and its request.
    pub fn end(&mut self, id: SessionId, origin: Option<(SessionId, RequestId)>) {
        self.note(id);
        self.publications.remove(&id);
        if let Some((session, request)) = origin {
            self.ended.entry(session).or_default().insert(request);
        }
    }

    fn note(&mut self, id: SessionId) {
        self.last = self.last.max(id.0.saturating_sub(FIRST_PUBLICATION));
    }
}
