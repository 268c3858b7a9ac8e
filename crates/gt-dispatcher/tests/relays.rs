//! Pieces of workers that cannot reach each other pass through the dispatcher.

use std::time::Duration;

use gt_dispatcher::{Dispatcher, Limits, PeerId, ToPeer};
use gt_ir::message::{Failure, ServerToWorker, Welcome, WorkerToServer};
use gt_ir::{Incarnation, LaneId, Piece, SlotId, SourceId, TransferId, WorkerId};

use crate::common::{send, worker};

fn join(dispatcher: &mut Dispatcher, number: u64) -> WorkerId {
    let hello = worker(format!("w{number}"), None);
    let out = send(dispatcher, Duration::ZERO, PeerId::worker(number), hello);
    let welcome = out.into_iter().find_map(|(_, message)| match message {
        ToPeer::Welcome(Welcome::Worker(welcome)) => Some(welcome.worker),
        _ => None,
    });
    welcome.expect("it is welcome")
}

#[test]
fn a_piece_is_passed_on_to_the_worker_that_it_is_for() {
    let mut dispatcher = Dispatcher::new("machine".into(), Limits::default(), None);
    let [_, second] = [1, 2].map(|number| join(&mut dispatcher, number));
    let to = LaneId { incarnation: Incarnation(7), slot: SlotId(1) };
    let failure = Failure::new("sum", "too large", "w1", SourceId::default());
    let piece =
        Piece { transfer: TransferId(5), number: 0, from: SlotId(0), to, result: Err(failure) };
    let relay = |to| WorkerToServer::Relay { to, piece: piece.clone() };
    let out = send(&mut dispatcher, Duration::ZERO, PeerId::worker(1), relay(second));
    let passed = ToPeer::Worker(ServerToWorker::Piece(piece.clone()));
    assert_eq!(out, [(PeerId::worker(2), passed)]);
    // The loss of a worker is noticed by the end of its own link.
    assert_eq!(send(&mut dispatcher, Duration::ZERO, PeerId::worker(1), relay(WorkerId(99))), []);
}
