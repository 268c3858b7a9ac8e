//! Who has asked for what, in the log; requests that are too long; operators with revoked keys.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use gt_dispatcher::log::Log;
use gt_dispatcher::rules::Rules;
use gt_dispatcher::{Dispatcher, Limits, PeerId, ToPeer};
use gt_ir::RequestId;
use gt_ir::message::{
    Badge, Hello, OperatorHello, OperatorToServer, ServerToOperator, WatcherHello,
};

use crate::common::send;

const OPERATOR: PeerId = PeerId::operator(1);
const ADA: PeerId = PeerId::operator(2);

type Lines = Arc<Mutex<Vec<String>>>;

fn badge(user: &str) -> Option<Box<Badge>> {
    Some(Box::new(Badge { user: user.into(), team: String::new(), proof: [0; 32] }))
}

/// A dispatcher with an operator and ada as another one, and its log.
fn dispatcher(name: &str) -> (Dispatcher, Lines) {
    let lines = Lines::default();
    let sink = lines.clone();
    let log = Log::new(Box::new(move |line: &str| sink.lock().unwrap().push(line.into())));
    let mut dispatcher = Dispatcher::new(String::new(), Limits::default(), Some(log));
    send(&mut dispatcher, Duration::ZERO, OPERATOR, Hello::Operator(OperatorHello::new(name)));
    let hello = OperatorHello { badge: badge("ada"), ..OperatorHello::new(name) };
    send(&mut dispatcher, Duration::ZERO, ADA, Hello::Operator(hello));
    (dispatcher, lines)
}

fn pause(user: Option<&str>, name: Option<&str>) -> OperatorToServer {
    let (user, name) = (user.map(str::to_string), name.map(str::to_string));
    OperatorToServer::Pause { request: RequestId(3), user, name, is_paused: true }
}

#[test]
fn the_log_names_the_user_of_the_key_beside_the_name() {
    let (mut dispatcher, lines) = dispatcher("eve' user='bob");
    send(&mut dispatcher, Duration::ZERO, OPERATOR, pause(None, Some("x")));
    send(&mut dispatcher, Duration::ZERO, ADA, pause(None, Some("x")));
    let lines = lines.lock().unwrap();
    let asked: Vec<&String> = lines.iter().filter(|line| line.contains("by='")).collect();
    assert_eq!(asked.len(), 2);
    assert!(asked[0].contains("by='eve_ user=_bob' operator Pause {"), "{}", asked[0]);
    assert!(asked[1].contains("by='eve_ user=_bob' user='ada' Pause {"), "{}", asked[1]);
}

#[test]
fn long_names_are_refused_and_not_logged() {
    let (mut dispatcher, lines) = dispatcher("eve");
    let request = RequestId(3);
    let long = "é".repeat(513);
    let (user, name) = (Some(long.clone()), long.clone());
    let within = Duration::from_secs(1);
    for (what, message) in [
        ("user", pause(Some(&long), None)),
        ("session", pause(None, Some(&long))),
        (
            "user",
            OperatorToServer::Weigh { request, user: Some(long.clone()), name: None, weight: None },
        ),
        ("user", OperatorToServer::EndSession { request, user, name: "x".into() }),
        ("session", OperatorToServer::EndSession { request, user: None, name }),
        ("worker", OperatorToServer::Drain { request, worker: long.clone(), within, force: false }),
    ] {
        let out = send(&mut dispatcher, Duration::ZERO, OPERATOR, message);
        let [(OPERATOR, ToPeer::Operator(ServerToOperator::Done { result, .. }))] = out.as_slice()
        else {
            panic!("{out:?}")
        };
        let start = format!("the name of the {what} has 1026 bytes, expected at most 512 letters");
        let reason = result.clone().unwrap_err();
        assert!(reason.starts_with(&start) && !reason.contains('\n'), "{reason}");
    }
    assert!(lines.lock().unwrap().iter().all(|line| line.len() < 600));
    let out = send(&mut dispatcher, Duration::ZERO, OPERATOR, pause(None, Some(&"é".repeat(512))));
    assert!(format!("{out:?}").contains("there is no session"), "{out:?}");
}

#[test]
fn operators_and_watchers_end_when_their_users_key_is_revoked() {
    let (mut dispatcher, _) = dispatcher("x");
    let (ada, bob) = (PeerId::watcher(3), PeerId::watcher(4));
    for (peer, user) in [(ada, "ada"), (bob, "bob")] {
        let hello = WatcherHello { badge: badge(user), ..WatcherHello::new("x") };
        send(&mut dispatcher, Duration::ZERO, peer, Hello::Watcher(hello));
    }
    let revoked = [("ada".to_string(), None)].into();
    dispatcher.set_rules(Duration::ZERO, Rules { revoked, ..Rules::default() });
    let mut out = Vec::new();
    dispatcher.take_outbox(&mut out);
    let ended: Vec<PeerId> = out
        .iter()
        .filter_map(|(peer, message)| matches!(message, ToPeer::Goodbye(_)).then_some(*peer))
        .collect();
    assert_eq!(ended, [ADA, ada]);
    assert_eq!(send(&mut dispatcher, Duration::ZERO, ADA, pause(None, Some("x"))), []);
    assert_eq!(send(&mut dispatcher, Duration::ZERO, OPERATOR, pause(None, Some("x"))).len(), 1);
}
