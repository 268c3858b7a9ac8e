//! The publications of a journal.

use std::collections::BTreeMap;

use gt_ir::publication::FIRST_PUBLICATION;
use gt_ir::{RequestId, SessionId};

use super::Publication;

/// The publications of a journal.
#[derive(Default)]
pub(crate) struct StoredPublications {
    pub publications: BTreeMap<SessionId, Publication>,
    /// The last request of each session whose publication has ended.
    pub ended: BTreeMap<SessionId, RequestId>,
    /// The last number assigned.
    pub last: u32,
}

impl StoredPublications {
    pub fn add(&mut self, publication: Publication) {
        self.note(publication.id);
        self.publications.insert(publication.id, publication);
    }

    /// Removes a publication; `origin` is the living session that published it, and its request.
    pub fn end(&mut self, id: SessionId, origin: Option<(SessionId, RequestId)>) {
        self.note(id);
        self.publications.remove(&id);
        if let Some((session, request)) = origin {
            let last = self.ended.entry(session).or_insert(request);
            *last = request.max(*last);
        }
    }

    fn note(&mut self, id: SessionId) {
        self.last = self.last.max(id.0.saturating_sub(FIRST_PUBLICATION));
    }
}
