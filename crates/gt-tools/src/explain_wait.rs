//! `gt explain-wait`: what a session waits for, and which sessions cause it.

use std::fmt::Write;
use std::time::Duration;

use gt_ir::SessionOrigin;
use gt_ir::status::{SessionStatus, Status, WINDOWS, Waits, WindowUse};

use crate::error::ToolError;
use crate::find::WatchTarget;
use crate::words::{bytes, duration, grouped, windows};

/// Explains what a session of a dispatcher waits for. The name is that of `gt top`,
/// `train.py ada@box #3`, or the number alone; a program, a user or a host means all of its sessions.
///
/// # Errors
/// No dispatcher is found, or it has no such session.
pub fn run(target: &WatchTarget, name: &str) -> Result<String, ToolError> {
    explain(&target.watch()?.status()?, name)
}

fn explain(status: &Status, name: &str) -> Result<String, ToolError> {
    let named = |matches: &dyn Fn(&SessionStatus) -> bool| -> Vec<&SessionStatus> {
        status.sessions.iter().filter(|session| matches(session)).collect()
    };
    let number = name.strip_prefix('#').unwrap_or(name).parse();
    let mut found = named(&|session| session.name == name || number == Ok(session.number.0));
    if found.is_empty() {
        found = named(&|session| is_of(session, name));
    }
    if found.is_empty() {
        let known: Vec<&str> = status.sessions.iter().map(|one| one.name.as_str()).collect();
        let known = if known.is_empty() { "none".into() } else { known.join(", ") };
        let text = format!("there is no session '{name}'\n  hint: the sessions are: {known}");
        return Err(ToolError::BadOption(text));
    }
    let texts: Vec<String> = found.into_iter().map(|session| of_one(status, session)).collect();
    Ok(texts.join("\n"))
}

/// Returns whether a session is of a program, a user or a host, or of a user on a host.
fn is_of(session: &SessionStatus, name: &str) -> bool {
    let SessionOrigin { program, user, host } = &session.origin;
    let proven = &session.entitlement.user;
    let user = if proven.is_empty() { user } else { proven };
    !name.is_empty()
        && ([program, user, host].contains(&&name.to_string()) || format!("{user}@{host}") == name)
}

fn of_one(status: &Status, session: &SessionStatus) -> String {
    let mut out = String::new();
    let name = &session.name;
    let _ = match &session.waits {
        Waits::Nothing => writeln!(out, "{name} waits for nothing: all that it sent is done."),
        Waits::Workers => writeln!(out, "{name} waits for a worker: none is connected."),
        Waits::Operator => {
            writeln!(out, "{name} is paused, by an operator or its user (`gt sessions resume`).")
        }
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
            writeln!(out, "{name} waits for a value: {tensor}, on worker {worker}, for {time}.")
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
    let share = format!("{:.0} % of their time", 100.0 * session.share);
    let windows = windows(&session.windows);
    let _ = writeln!(out, "Of the device time that it was entitled to, it has used {windows}.");
    let _ = writeln!(
        out,
        "Its share is {share}; it has used {} of device time, and holds {}{}.",
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

/// `run-12 eve@box #2, which holds 1.2 GB`
fn holds(status: &Status, name: &str) -> String {
    match status.sessions.iter().find(|session| session.name == name) {
        Some(session) => format!("{name}, which holds {}", bytes(session.bytes)),
        None => name.to_string(),
    }
}

/// `run-12 eve@box #2, whose share is 50 %, and which has used 12.3 s of device time`
fn used(status: &Status, name: &str) -> String {
    match status.sessions.iter().find(|session| session.name == name) {
        Some(session) => format!(
            "{name}, whose share is {:.0} % and which has used {} of device time, {}{}",
            100.0 * session.share,
            time(session.busy),
            lately(&session.windows[0]),
            anticipated(session)
        ),
        None => name.to_string(),
    }
}

/// `, and for which workers wait, as it asks every 0.4 ms`
fn anticipated(session: &SessionStatus) -> String {
    match session.mean_anticipation() {
        Some(mean) => format!(
            ", and for which workers wait as it asks again after {} ({} times, {} in all)",
            time(mean),
            grouped(session.anticipations),
            time(session.anticipated)
        ),
        None => String::new(),
    }
}

/// `2.5 s of it in the last 10 s, in which it was entitled to 5.0 s`
fn lately(window: &WindowUse) -> String {
    let [used, entitled] = [window.used, window.entitled].map(|time| time.as_secs_f64());
    let length = WINDOWS[0].1.as_secs();
    format!("{used:.1} s of it in the last {length} s, in which it was entitled to {entitled:.1} s")
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
    use gt_ir::status::AwaitedTensor;

    fn session(number: u32, user: &str, waits: Waits) -> SessionStatus {
        SessionStatus {
            number: SessionId(number),
            name: format!("train.py {user}@box #{number}"),
            origin: SessionOrigin {
                program: "train.py".into(),
                user: "nobody".into(),
                host: "box".into(),
            },
            slots: vec![(0, "gpu0".into()), (1, "gpu0".into())],
            entitlement: Entitlement { user: user.into(), ..Entitlement::default() },
            share: 0.5,
            since: Duration::ZERO,
            instructions: 0,
            hot_instructions: 0,
            open: 2000,
            queued: 500,
            bytes: 1 << 20,
            spilled: 0,
            busy: Duration::from_millis(1500),
            anticipated: Duration::ZERO,
            anticipations: 0,
            windows: WINDOWS
                .map(|(_, length)| WindowUse { used: length / 4, entitled: length / 2 }),
            recoveries: 0,
            unkept: String::new(),
            tensors: 0,
            named: None,
            waits,
            last_error: None,
            behind: Vec::new(),
        }
    }

    #[test]
    fn it_says_for_what_and_because_of_whom() {
        let since = Duration::from_secs(1);
        let tensor =
            AwaitedTensor { id: TensorId(7), operation: "sum".into(), line: String::new() };
        let value = Waits::Value { tensor, worker: "0".into(), since };
        let ada = SessionStatus {
            behind: vec!["train.py eve@box #2".into()],
            ..session(1, "ada", value)
        };
        let eve = SessionStatus {
            anticipated: Duration::from_millis(2),
            anticipations: 5,
            ..session(2, "eve", Waits::Room)
        };
        let sessions = vec![ada, eve];
        let status = Status { now: Duration::from_secs(4), sessions, ..Status::default() };
        let wants = "train.py ada@box #1 waits for a value: sum, on worker 0, for 3.00 s.\n\
            With work on the same workers: train.py eve@box #2, whose share is 50 % and which has used 1.50 s of device time, 2.5 s of it in the last 10 s, in which it was entitled to 5.0 s, \
            and for which workers wait as it asks again after 400.0 us (5 times, 2.00 ms in all).\n\
            Of the device time that it was entitled to, it has used 2.5 of 5.0 s in 10s, 15.0 of 30.0 s in 1min, 150.0 of 300.0 s in 10min.\n\
            Its share is 50 % of their time; it has used 1.50 s of device time, and holds 1.0 MB.\n";
        for name in ["train.py ada@box #1", "#1", "1", "ada", "ada@box"] {
            assert_eq!(explain(&status, name).unwrap(), wants, "{name}");
        }
        for name in ["train.py", "box"] {
            assert!(explain(&status, name).unwrap().contains("eve@box #2 waits for"), "{name}");
        }
        assert!(
            explain(&status, "nobody").is_err(),
            "the key's user replaces the one that is named"
        );
        let eve = explain(&status, "eve").unwrap();
        assert!(eve.starts_with(
            "train.py eve@box #2 waits for room: 1,500 of its instructions are at the workers"
        ));
        let error = explain(&status, "bob").unwrap_err().to_string();
        assert!(
            error.contains("no session 'bob'") && error.contains("ada@box #1, train.py eve@box #2"),
            "{error}"
        );
    }
}
