//! `gt explain-wait`: what a session waits for, and which sessions cause it.

use std::fmt::Write;
use std::time::Duration;

use gt_ir::status::{SessionStatus, Status, Waits};

use crate::error::ToolError;
use crate::find::WatchTarget;
use crate::words::{bytes, duration, grouped};

/// Explains what a session of a dispatcher waits for. The name is that of `gt top`: `ada#1`; a name
/// without a number means all sessions of the user.
///
/// # Errors
/// No dispatcher is found, or it has no such session.
pub fn run(target: &WatchTarget, name: &str) -> Result<String, ToolError> {
    explain(&target.watch()?.status()?, name)
}

fn explain(status: &Status, name: &str) -> Result<String, ToolError> {
    let is_it = |session: &&SessionStatus| {
        let user = session.name.rsplit_once('#').map(|(user, _)| user);
        session.name == name || user == Some(name)
    };
    let found: Vec<&SessionStatus> = status.sessions.iter().filter(is_it).collect();
    if found.is_empty() {
        let known: Vec<&str> = status.sessions.iter().map(|one| one.name.as_str()).collect();
        let known = if known.is_empty() { "none is there".into() } else { known.join(", ") };
        let text =
            format!("there is no session '{name}'\n  hint: sessions that are there: {known}");
        return Err(ToolError::BadOption(text));
    }
    let texts: Vec<String> = found.into_iter().map(|session| of_one(status, session)).collect();
    Ok(texts.join("\n"))
}

fn of_one(status: &Status, session: &SessionStatus) -> String {
    let mut out = String::new();
    let name = &session.name;
    let _ = match &session.waits {
        Waits::Nothing => writeln!(out, "{name} waits for nothing: all that it sent is done."),
        Waits::Workers => writeln!(out, "{name} waits for a worker: none is connected."),
        Waits::Room => writeln!(
            out,
            "{name} waits for room: {} of its instructions are at the workers, {} wait for their turn.",
            grouped(session.open.saturating_sub(session.queued)),
            grouped(session.queued)
        ),
        Waits::Reader => writeln!(
            out,
            "{name} waits for its own client, which has not read what was sent to it."
        ),
        Waits::Copies => writeln!(
            out,
            "{name} waits until its tensors are copied, so that they can be made again (--lineage)."
        ),
        Waits::Work => {
            writeln!(out, "{name} has {} instructions to run.", grouped(session.open))
        }
        Waits::Value { tensor, worker, since } => {
            let time = duration(status.now.saturating_sub(*since).as_secs_f64());
            writeln!(
                out,
                "{name} waits for a value: tensor {tensor} of worker {worker}, for {time}."
            )
        }
        Waits::Memory { worker, bytes: need, holder, since } => {
            let time = duration(status.now.saturating_sub(*since).as_secs_f64());
            let of = match holder.as_str() {
                "" => "of which the worker has no more".to_string(),
                holder => format!("of which {holder} may hold no more there"),
            };
            let need = bytes(*need);
            writeln!(out, "{name} waits for {need} of memory on worker {worker}, {of}, for {time}.")
        }
    };
    let is_short = matches!(session.waits, Waits::Memory { .. });
    if is_short && session.behind.is_empty() {
        let _ = writeln!(out, "It holds all of that itself.");
    } else if is_short {
        let held = session.behind.iter().map(|other| holds(status, other));
        let held: Vec<String> = held.collect();
        let _ = writeln!(out, "The others that hold memory: {}.", held.join("; "));
    } else if session.behind.is_empty() {
        let _ = writeln!(out, "Nobody else has work on its workers.");
    } else {
        let others = session.behind.iter().map(|other| used(status, other));
        let others: Vec<String> = others.collect();
        let _ = writeln!(out, "With work on the same workers: {}.", others.join("; "));
    }
    let entitled = format!("{:.0} % of their time", 100.0 * session.share);
    let _ = writeln!(
        out,
        "It is entitled to {entitled}, has used {} of device time, and holds {}{}.",
        time(session.busy),
        bytes(session.bytes),
        if session.spilled > 0 {
            format!(" and {} elsewhere", bytes(session.spilled))
        } else {
            String::new()
        }
    );
    out
}

/// `eve#2, which holds 1.2 GB`
fn holds(status: &Status, name: &str) -> String {
    match status.sessions.iter().find(|session| session.name == name) {
        Some(session) => format!("{name}, which holds {}", bytes(session.bytes)),
        None => name.to_string(),
    }
}

/// `eve#2, entitled to 50 %, which has used 12.3 s of device time`
fn used(status: &Status, name: &str) -> String {
    match status.sessions.iter().find(|session| session.name == name) {
        Some(session) => format!(
            "{name}, entitled to {:.0} %, which has used {} of device time",
            100.0 * session.share,
            time(session.busy)
        ),
        None => name.to_string(),
    }
}

fn time(time: Duration) -> String {
    duration(time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gt_ir::SessionId;
    use gt_ir::TensorId;
    use gt_ir::entitlement::Entitlement;

    fn session(number: u32, user: &str, waits: Waits) -> SessionStatus {
        SessionStatus {
            number: SessionId(number),
            name: format!("{user}#{number}"),
            slots: vec![(0, "gpu0".into()), (1, "gpu0".into())],
            entitlement: Entitlement { user: user.into(), ..Entitlement::default() },
            share: 0.5,
            since: Duration::ZERO,
            instructions: 0,
            open: 2000,
            queued: 500,
            bytes: 1 << 20,
            spilled: 0,
            busy: Duration::from_millis(1500),
            recoveries: 0,
            unkept: String::new(),
            waits,
            behind: Vec::new(),
        }
    }

    #[test]
    fn it_says_for_what_and_because_of_whom() {
        let since = Duration::from_secs(1);
        let value = Waits::Value { tensor: TensorId(7), worker: "0".into(), since };
        let ada = SessionStatus { behind: vec!["eve#2".into()], ..session(1, "ada", value) };
        let sessions = vec![ada, session(2, "eve", Waits::Room)];
        let status = Status { now: Duration::from_secs(4), sessions, ..Status::default() };
        let wants = "ada#1 waits for a value: tensor 7 of worker 0, for 3.00 s.\n\
            With work on the same workers: eve#2, entitled to 50 %, which has used 1.50 s of device time.\n\
            It is entitled to 50 % of their time, has used 1.50 s of device time, and holds 1.0 MB.\n";
        assert_eq!(explain(&status, "ada#1").unwrap(), wants);
        assert_eq!(explain(&status, "ada").unwrap(), wants);
        let eve = explain(&status, "eve").unwrap();
        assert!(
            eve.starts_with("eve#2 waits for room: 1,500 of its instructions are at the workers")
        );
        let error = explain(&status, "bob").unwrap_err().to_string();
        assert!(error.contains("no session 'bob'") && error.contains("ada#1, eve#2"), "{error}");
    }
}
