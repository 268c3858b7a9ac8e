//! What takes which way between workers that cannot always reach each other.

use std::time::{Duration, Instant};

use gt_ir::message::{Failure, WorkerToServer, WorkerToWorker};
use gt_ir::{Incarnation, LaneId, Piece, SlotId, SourceId, TransferId, WorkerId};
use gt_net::address::Address;
use gt_net::peers::PeerLinks;

use super::Neighbours;

const LIMIT: Duration = Duration::from_secs(20);
const ONE: WorkerId = WorkerId(1);
const TWO: WorkerId = WorkerId(2);

fn neighbours(own: WorkerId) -> (Neighbours, String) {
    let address = Address::parse("localhost:9000").unwrap();
    let peers = PeerLinks::bind(&address, None, None).unwrap();
    let endpoint = peers.endpoint().to_string();
    (Neighbours::new(own, peers), endpoint)
}

fn piece(number: u32) -> Piece {
    let to = LaneId { incarnation: Incarnation(7), slot: SlotId(1) };
    let failure = Failure::new("sum", number.to_string(), "w", SourceId::default());
    Piece { transfer: TransferId(5), number, from: SlotId(0), to, result: Err(failure) }
}

/// Returns the numbers of relayed pieces, of which there must be some.
fn relayed(of: &mut Neighbours) -> Vec<u32> {
    let start = Instant::now();
    loop {
        while of.try_receive().unwrap().is_some() {}
        let numbers = of.undelivered().into_iter().map(number).collect::<Vec<_>>();
        if !numbers.is_empty() {
            return numbers;
        }
        assert!(start.elapsed() < LIMIT, "nothing is relayed");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn number(message: WorkerToServer) -> u32 {
    match message {
        WorkerToServer::Relay { to: TWO, piece } => piece.number,
        other => panic!("{other:?} is not a relayed piece"),
    }
}

/// Returns the number of the next piece that arrives.
fn arrived(of: &mut Neighbours, other: &mut Neighbours) -> u32 {
    let start = Instant::now();
    loop {
        if let Some(WorkerToWorker::Piece { piece, .. }) = of.try_receive().unwrap() {
            return piece.number;
        }
        drop(other.undelivered());
        assert!(start.elapsed() < LIMIT, "nothing has arrived");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn pieces_for_a_worker_that_cannot_be_reached_are_relayed_in_their_order() {
    let ((mut one, endpoint), (mut two, _)) = (neighbours(ONE), neighbours(TWO));
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    one.know(TWO, "two".into(), format!("tcp://{closed}"), String::new());
    two.know(ONE, "one".into(), endpoint, String::new());
    assert_eq!(one.send(TWO, piece(0)), None);
    assert_eq!(one.send(TWO, piece(1)), None);
    // A look at the links, as others cause it, does not let later pieces overtake.
    assert!(one.measured().is_none());
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(one.peers.carried().count(), 0);
    assert_eq!(one.send(TWO, piece(2)), None);
    assert_eq!(relayed(&mut one), [0, 1, 2]);
    assert_eq!(one.send(TWO, piece(3)).map(number), Some(3));
    // The other worker can open a link. Pieces on it would overtake those in the server.
    assert_eq!(two.send(ONE, piece(10)), None);
    assert_eq!(arrived(&mut one, &mut two), 10);
    assert_eq!(one.send(TWO, piece(4)).map(number), Some(4));
    // A worker that comes back is another one.
    one.forget(TWO);
    one.know(TWO, "two".into(), two.peers.endpoint().to_string(), String::new());
    assert_eq!(one.send(TWO, piece(5)), None);
    assert_eq!(arrived(&mut two, &mut one), 5);
}

#[test]
fn pieces_on_a_link_that_is_lost_are_reported() {
    let ((mut one, _), (mut two, endpoint)) = (neighbours(ONE), neighbours(TWO));
    one.know(TWO, "two".into(), endpoint, String::new());
    assert_eq!(one.send(TWO, piece(0)), None);
    assert_eq!(arrived(&mut two, &mut one), 0);
    assert_eq!(one.send(TWO, piece(1)), None);
    drop(two);
    let start = Instant::now();
    let mut undelivered = Vec::new();
    while undelivered.is_empty() {
        while one.try_receive().unwrap().is_some() {}
        undelivered = one.undelivered();
        assert!(start.elapsed() < LIMIT, "the loss is not noticed");
        std::thread::sleep(Duration::from_millis(5));
    }
    // Which of them have arrived is not known.
    let is_report =
        |message: &WorkerToServer| matches!(message, WorkerToServer::Undelivered { .. });
    assert!(undelivered.len() == 2 && undelivered.iter().all(is_report), "{undelivered:?}");
}
