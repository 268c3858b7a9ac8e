//! What workers learn about the users whose sessions they serve.

use crate::common::{Program, client, send, worker};
use gt_dispatcher::{Dispatcher, Limits, PeerId, ToPeer};
use gt_ir::entitlement::{Entitlement, Usage};
use gt_ir::message::{
    Badge, ClientToServer, LARGE_VALUE, Reply, Role, ServerToWorker, WorkerToServer,
};
use gt_ir::status::{Status, Waits};
use gt_ir::{ClientCommand, Incarnation, LaneId, RequestId, SlotId};
use std::time::Duration;

/// Connects a peer; returns all messages that follow.
fn connect(
    dispatcher: &mut Dispatcher,
    peer: PeerId,
    badge: Option<Badge>,
) -> Vec<(PeerId, ToPeer)> {
    let name = format!("p{}", peer.number);
    let hello = if peer.role == Role::Worker { worker(name, None) } else { client(name, badge) };
    send(dispatcher, Duration::ZERO, peer, hello)
}

fn admitted(out: &[(PeerId, ToPeer)]) -> Vec<(u64, u32, &Entitlement)> {
    let admissions = out.iter().filter_map(|(peer, message)| match message {
        ToPeer::Worker(ServerToWorker::Admit { incarnation, entitlement }) => {
            Some((peer.number, incarnation.0, entitlement))
        }
        _ => None,
    });
    admissions.collect()
}

#[test]
fn workers_learn_entitlements_in_either_order_of_joining() {
    let mut dispatcher = Dispatcher::new(String::new(), Limits::default(), None);
    connect(&mut dispatcher, PeerId::worker(1), None);
    let badge = Badge { user: "ada".into(), team: "vision".into(), proof: [0; 32] };
    let ada = Entitlement { user: "ada".into(), team: "vision".into(), ..Entitlement::default() };
    let out = connect(&mut dispatcher, PeerId::client(2), Some(badge));
    assert_eq!(admitted(&out), [(1, 1, &ada)]);
    // A client without a badge has the default entitlement, which is not sent.
    let out = connect(&mut dispatcher, PeerId::client(3), None);
    assert_eq!(admitted(&out), []);
    let out = connect(&mut dispatcher, PeerId::worker(4), None);
    assert_eq!(admitted(&out), [(4, 1, &ada)]);
    let place = |wanted: fn(&ToPeer) -> bool| out.iter().position(|(_, message)| wanted(message));
    let welcome = place(|message| matches!(message, ToPeer::Welcome(_)));
    assert!(
        welcome < place(|message| matches!(message, ToPeer::Worker(ServerToWorker::Admit { .. })))
    );
}

/// A user's status sums up all of the user's sessions, including ended ones.
#[test]
fn status_of_a_user_sums_up_its_sessions() {
    let mut dispatcher = Dispatcher::new(String::new(), Limits::default(), None);
    connect(&mut dispatcher, PeerId::worker(1), None);
    let badge = || Badge { user: "ada".into(), team: "vision".into(), proof: [0; 32] };
    for peer in [4, 5] {
        connect(&mut dispatcher, PeerId::client(peer), Some(badge()));
    }
    connect(&mut dispatcher, PeerId::client(3), None);
    for (session, device) in [(1, 3_000), (2, 500), (3, 20)] {
        let lane = LaneId { incarnation: Incarnation(session), slot: SlotId(0) };
        let usage =
            Usage { device, bytes: 100 * u64::from(session), spilled: 7, ..Usage::default() };
        let done = WorkerToServer::LaneDone { lane, weight: 0, usage };
        dispatcher.handle(Duration::ZERO, PeerId::worker(1), done);
    }
    let user_status = |dispatcher: &mut Dispatcher| {
        let users = status(dispatcher).users.into_iter();
        let users = users.map(|user| {
            let name = format!("{}/{}", user.entitlement.team, user.entitlement.user);
            (name, user.sessions, user.share, user.busy.as_nanos(), user.bytes, user.spilled)
        });
        users.collect::<Vec<_>>()
    };
    let without_user = ("/".to_string(), 1, 0.5, 20, 300, 7);
    let ada = |sessions, share, bytes, spilled| {
        ("vision/ada".to_string(), sessions, share, 3_500, bytes, spilled)
    };
    assert_eq!(user_status(&mut dispatcher), [without_user.clone(), ada(2, 0.5, 300, 14)]);
    dispatcher.disconnect(Duration::ZERO, PeerId::client(4), "it left");
    assert_eq!(user_status(&mut dispatcher), [without_user, ada(1, 0.5, 200, 7)]);
    dispatcher.disconnect(Duration::ZERO, PeerId::client(5), "it left");
    assert_eq!(user_status(&mut dispatcher)[1], ada(0, 0.0, 0, 0));
}

/// Returns what the first session waits for, as reported to another client.
fn waits(dispatcher: &mut Dispatcher) -> Waits {
    status(dispatcher).sessions.swap_remove(0).waits
}

/// Returns the status, as reported to the client of peer 3.
fn status(dispatcher: &mut Dispatcher) -> Status {
    let ask = ClientToServer::Stream(vec![ClientCommand::Status { request: RequestId(99) }]);
    let asker = PeerId::client(3);
    let out = send(dispatcher, Duration::ZERO, asker, ask);
    let status = out.iter().find_map(|(_, message)| match &message.answer()?.result {
        Ok(Reply::Status(status)) => Some((**status).clone()),
        _ => None,
    });
    status.expect("answered at once")
}

#[test]
fn a_session_waits_for_a_client_that_does_not_read() {
    let limits = Limits { unread: LARGE_VALUE, ..Limits::default() };
    let mut dispatcher = Dispatcher::new(String::new(), limits, None);
    connect(&mut dispatcher, PeerId::worker(1), None);
    connect(&mut dispatcher, PeerId::client(2), None);
    connect(&mut dispatcher, PeerId::client(3), None);
    assert_eq!(waits(&mut dispatcher), Waits::Nothing);
    let mut program = Program::default();
    let large = program.ones(&[LARGE_VALUE as usize / 4]);
    program.fetch(large);
    let more = program.commands.len();
    program.ones(&[1]);
    let rest = program.commands.split_off(more);
    for commands in [program.commands, rest] {
        let stream = ClientToServer::Stream(commands);
        dispatcher.handle(Duration::ZERO, PeerId::client(2), stream);
    }
    assert_eq!(waits(&mut dispatcher), Waits::Reader);
}
