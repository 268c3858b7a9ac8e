//! `gt sessions`: the sessions of a user, and who has them.

use std::time::Duration;

use gt_ir::status::{NamedSession, SessionStatus, Status};

use crate::error::ToolError;
use crate::find::WatchTarget;
use crate::top::view::waits;
use crate::words::{age, bytes, duration, grouped, table};

/// Lists the sessions of the user whose key is used; all sessions without a user's key.
///
/// # Errors
/// No dispatcher is found, or it does not answer.
pub fn run(target: &WatchTarget) -> Result<String, ToolError> {
    let mut watcher = target.watch()?;
    let user = watcher.user().to_string();
    Ok(list(&watcher.status()?, &user))
}

fn list(status: &Status, user: &str) -> String {
    let is_own = |session: &&SessionStatus| user.is_empty() || session.entitlement.user == user;
    let mut own: Vec<&SessionStatus> = status.sessions.iter().filter(is_own).collect();
    own.sort_by_key(|session| (session.named.as_ref().map(|named| &named.name), session.number));
    own.sort_by_key(|session| session.named.is_none());
    let mut rows = vec![
        ["name", "age", "held by", "tensors", "bytes", "device time", "waits for"]
            .map(String::from)
            .to_vec(),
    ];
    rows.extend(own.iter().map(|session| row(session, status.now)));
    let mut text = match own.is_empty() {
        true if user.is_empty() => "there are no sessions\n".to_string(),
        true => format!("there are no sessions of user {user}\n"),
        false => table(&rows),
    };
    if user.is_empty() && !own.is_empty() {
        text.push_str(
            "\nWithout a user's key, all clients are of one user: each may attach to any session by its name, unless it is private.\n",
        );
    }
    text
}

fn row(session: &SessionStatus, now: Duration) -> Vec<String> {
    let since = |at: Duration| age(now.saturating_sub(at));
    let name = session.named.as_ref().map_or("-", |named| &named.name).to_string();
    let holder = match &session.named {
        Some(NamedSession { is_detached: true, is_private, since: at, .. }) => {
            let private = if *is_private { ", private" } else { "" };
            format!("detached for {}{private}", since(*at))
        }
        _ => {
            let holder = session.origin.holder(&session.entitlement.user);
            let is_lost = session.entitlement.is_away;
            if is_lost { format!("{holder}, whose connection is lost") } else { holder }
        }
    };
    vec![
        name,
        since(session.since),
        holder,
        grouped(session.tensors),
        bytes(session.bytes + session.spilled),
        duration(session.busy.as_secs_f64()),
        waits(session, now),
    ]
}
