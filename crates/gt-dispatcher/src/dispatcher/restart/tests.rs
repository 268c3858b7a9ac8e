use gt_ir::message::ClientHello;
use gt_ir::{SessionId, SessionOrigin};

use super::*;
use crate::lineage::LineageLimits;
use crate::planner::Host;
use crate::{Limits, journal::StoredTensors};

#[test]
fn a_base_from_the_journal_has_its_slots() {
    let mut slots = Slots::default();
    for number in 0..2 {
        slots.add(Host { worker: WorkerId(number), number, arithmetic: 0 }, |_| true);
    }
    let mut state = SnapshotState::default();
    state.catalogue.slots = slots.clone();
    let base = BaseRecord {
        session: SessionId(3),
        snapshot: 1,
        received: 0,
        planned: 0,
        state: Arc::new(state),
        tensors: StoredTensors::default(),
        copies: Vec::new(),
        blocks: Vec::new(),
    };
    let mut history = History::default();
    let hello = Box::new(ClientHello::new(SessionOrigin::new("client")));
    history.add(JournalRecord::Session { session: SessionId(3), hello });
    history.add(JournalRecord::Slots { session: SessionId(3), from: 0, slots });
    history.add(JournalRecord::Base(Box::new(base)));
    let lineage = Some(LineageLimits::default());
    let limits = Limits { lineage, ..Limits::default() };
    let mut dispatcher = Dispatcher::new(String::new(), limits, None);
    let session = history.take_sessions().remove(0);
    dispatcher.adopt(Duration::ZERO, PeerId::client(1), session).unwrap();
    let session = dispatcher.peers.sessions.get_mut(PeerId::client(1)).unwrap();
    assert_eq!(session.planning.catalogue.slots.count(), 0, "its workers have not reconnected");
    let state = session.lineage.as_mut().unwrap().rewind(|_| true).unwrap();
    assert_eq!(state.catalogue.slots.count(), 2);
}
