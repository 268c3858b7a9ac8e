//! Links between workers.

use std::time::{Duration, Instant};

use bytes::Bytes;
use gt_ir::WorkerId;
use gt_net::address::Address;
use gt_net::keys::Key;
use gt_net::peers::{FailedLink, PeerEvent, PeerLinks};
use gt_net::server::LinkId;

const LIMIT: Duration = Duration::from_secs(20);

fn links(key: Option<&Key>) -> PeerLinks {
    PeerLinks::bind(&Address::parse("localhost:9000").unwrap(), None, key).unwrap()
}

/// Returns the next event, which must come.
fn next(links: &mut PeerLinks, others: &mut [&mut PeerLinks]) -> PeerEvent {
    let start = Instant::now();
    loop {
        if let Some(event) = links.try_receive().unwrap() {
            return event;
        }
        others.iter_mut().for_each(|other| drop(other.failed()));
        assert!(start.elapsed() < LIMIT, "nothing has arrived");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn message(links: &mut PeerLinks) -> (LinkId, Vec<Bytes>) {
    match next(links, &mut []) {
        PeerEvent::Message { link, frames } => (link, frames),
        PeerEvent::Disconnected(_) => panic!("the link has ended"),
    }
}

fn text(of: &str) -> Vec<Bytes> {
    vec![Bytes::copy_from_slice(of.as_bytes())]
}

fn failed(links: &mut PeerLinks) -> Vec<FailedLink> {
    let start = Instant::now();
    loop {
        while links.try_receive().unwrap().is_some() {}
        let failed = links.failed();
        if !failed.is_empty() {
            return failed;
        }
        assert!(start.elapsed() < LIMIT, "no link has failed");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_pair_has_one_link_for_both_directions() {
    let cluster = Key::generate();
    for key in [None, Some(&cluster)] {
        let (mut one, mut two) = (links(key), links(key));
        let (first, second) = (WorkerId(1), WorkerId(2));
        one.know(second, two.endpoint().to_string());
        two.know(first, one.endpoint().to_string());
        one.send(second, &text("question")).unwrap();
        let (link, frames) = message(&mut two);
        assert_eq!(frames, text("question"));
        two.note_sender(first, &link);
        // The first worker gets the answer on the link that it has opened, long ones, too.
        let long = vec![Bytes::from(vec![7; 3 << 20]), Bytes::from_static(b"end")];
        two.send(first, &text("answer")).unwrap();
        two.send(first, &long).unwrap();
        let (back, frames) = message(&mut one);
        assert_eq!(frames, text("answer"));
        assert_eq!(message(&mut one), (back, long));
        // The end of one ends the link of both.
        drop(one);
        assert_eq!(failed(&mut two), [FailedLink { worker: first, was_open: true }]);
        assert!(two.send(first, &text("lost")).is_err());
        two.forget(first);
        assert!(two.send(first, &text("unknown")).is_err());
    }
}

#[test]
fn a_worker_that_could_not_be_reached_is_told_once_and_reached_by_its_own_link() {
    let (mut one, mut two) = (links(None), links(None));
    let (first, second) = (WorkerId(1), WorkerId(2));
    // A port at which nothing listens.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    one.know(second, format!("tcp://{closed}"));
    two.know(first, one.endpoint().to_string());
    one.send(second, &text("lost")).unwrap();
    assert_eq!(failed(&mut one), [FailedLink { worker: second, was_open: false }]);
    assert!(!one.is_open(second));
    assert!(one.send(second, &text("lost")).is_err());
    std::thread::sleep(Duration::from_millis(60));
    assert!(one.failed().is_empty());
    two.send(first, &text("here")).unwrap();
    let (link, _) = message(&mut one);
    one.note_sender(second, &link);
    assert!(one.is_open(second));
    one.send(second, &text("there")).unwrap();
    assert_eq!(message(&mut two).1, text("there"));
}

#[test]
fn both_may_begin_at_once() {
    let (mut one, mut two) = (links(None), links(None));
    let (first, second) = (WorkerId(1), WorkerId(2));
    one.know(second, two.endpoint().to_string());
    two.know(first, one.endpoint().to_string());
    for number in 0..100 {
        one.send(second, &text(&format!("to two {number}"))).unwrap();
        two.send(first, &text(&format!("to one {number}"))).unwrap();
    }
    for number in 0..100 {
        let (link, frames) = message(&mut one);
        one.note_sender(second, &link);
        assert_eq!(frames, text(&format!("to one {number}")));
        let (link, frames) = message(&mut two);
        two.note_sender(first, &link);
        assert_eq!(frames, text(&format!("to two {number}")));
    }
}

#[test]
fn strangers_are_not_admitted() {
    let (ours, theirs) = (Key::generate(), Key::generate());
    let (mut one, mut two) = (links(Some(&ours)), links(Some(&theirs)));
    one.know(WorkerId(2), two.endpoint().to_string());
    one.send(WorkerId(2), &text("secret")).unwrap();
    assert_eq!(failed(&mut one), [FailedLink { worker: WorkerId(2), was_open: false }]);
    assert!(two.try_receive().unwrap().is_none());
}
