//! What workers are told of the users whose sessions they serve.

mod common;

use common::hello;
use gt_dispatcher::{Dispatcher, Limits, PeerId};
use gt_ir::message::{Badge, Hello, Message, Role};
use gt_ir::standing::Standing;
use std::time::Duration;

/// Says hello; gives all messages that follow.
fn join(
    dispatcher: &mut Dispatcher,
    peer: u64,
    role: Role,
    badge: Option<Badge>,
) -> Vec<(PeerId, Message)> {
    let Message::Hello(given) = hello(role, format!("p{peer}"), None) else { unreachable!() };
    let message = Message::Hello(Hello { badge: badge.map(Box::new), ..given });
    dispatcher.handle(Duration::ZERO, PeerId(peer), role, message);
    let mut out = Vec::new();
    dispatcher.take_outbox(&mut out);
    out
}

fn admitted(out: &[(PeerId, Message)]) -> Vec<(u64, u32, &Standing)> {
    let told = out.iter().filter_map(|(peer, message)| match message {
        Message::Admit { session, standing } => Some((peer.0, *session, standing)),
        _ => None,
    });
    told.collect()
}

#[test]
fn workers_are_told_of_users_whoever_comes_first() {
    let mut dispatcher = Dispatcher::new(String::new(), Limits::default(), None);
    join(&mut dispatcher, 1, Role::Worker, None);
    let badge = Badge { user: "ada".into(), team: "vision".into(), proof: [0; 32] };
    let ada = Standing { user: "ada".into(), team: "vision".into(), ..Standing::default() };
    let out = join(&mut dispatcher, 2, Role::Client, Some(badge));
    assert_eq!(admitted(&out), [(1, 1, &ada)]);
    // Whoever shows no badge is as everybody: there is nothing to tell.
    let out = join(&mut dispatcher, 3, Role::Client, None);
    assert_eq!(admitted(&out), []);
    let out = join(&mut dispatcher, 4, Role::Worker, None);
    assert_eq!(admitted(&out), [(4, 1, &ada)]);
    let place = |wanted: fn(&Message) -> bool| out.iter().position(|(_, message)| wanted(message));
    let welcome = place(|message| matches!(message, Message::Welcome(_)));
    assert!(welcome < place(|message| matches!(message, Message::Admit { .. })));
}
