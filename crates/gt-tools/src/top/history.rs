//! Cluster events and the last hour, as JSON.

use std::time::Duration;

use gt_ir::status::cluster_event::{ClusterEvent, ClusterEventKind, SessionLabel};
use gt_ir::status::{LastError, MinuteStatus};
use serde_json::{Map, Value, json};

/// Returns an event. The kinds have different fields: those that are about a session have its number
/// and its name.
pub fn event(event: &ClusterEvent) -> Value {
    let (kind, details) = details(&event.kind);
    let mut all = json!({
        "number": event.number,
        "seconds": event.at.as_secs_f64(),
        "kind": kind,
    });
    if let (Value::Object(all), Value::Object(details)) = (&mut all, details) {
        all.extend(details);
    }
    all
}

fn details(kind: &ClusterEventKind) -> (&'static str, Value) {
    match kind {
        ClusterEventKind::WorkerJoined { worker, is_back } => {
            ("worker_joined", json!({ "worker": worker, "back": is_back }))
        }
        ClusterEventKind::WorkerDrains { worker, within } => {
            ("worker_drains", json!({ "worker": worker, "within_seconds": within.as_secs_f64() }))
        }
        ClusterEventKind::DrainEnded { worker, reason } => {
            ("drain_ended", json!({ "worker": worker, "reason": reason }))
        }
        ClusterEventKind::WorkerLeft { worker, reason } => {
            ("worker_left", json!({ "worker": worker, "reason": reason }))
        }
        ClusterEventKind::WorkerLost { worker, reason } => {
            ("worker_lost", json!({ "worker": worker, "reason": reason }))
        }
        ClusterEventKind::SessionEnded { session, reason } => {
            ("session_ended", of(session, json!({ "reason": reason })))
        }
        ClusterEventKind::RecoveryBegun { session, cause, batches, bytes } => {
            let details = json!({ "reason": cause, "batches": batches, "bytes": bytes });
            ("recovery_begun", of(session, details))
        }
        ClusterEventKind::Recovered { session, cause, took } => {
            let details = json!({ "reason": cause, "took_seconds": took.as_secs_f64() });
            ("recovered", of(session, details))
        }
        ClusterEventKind::TensorsLost { session, reason } => {
            ("tensors_lost", of(session, json!({ "reason": reason })))
        }
        ClusterEventKind::CommandGivenUp { session, reason } => {
            ("command_given_up", of(session, json!({ "reason": reason })))
        }
        ClusterEventKind::SlotsMoved { session, from, to, slots, bytes, reason } => {
            let reason = reason.name();
            let moved = json!({
                "from": from, "to": to, "slots": slots, "bytes": bytes, "reason": reason,
            });
            ("slots_moved", of(session, moved))
        }
    }
}

fn of(session: &SessionLabel, mut details: Value) -> Value {
    details["session"] = json!(session.number.0);
    details["name"] = json!(session.name);
    details
}

/// Returns a session's last error; null without one.
pub fn last_error(error: Option<&LastError>, now: Duration) -> Value {
    let Some(LastError { at, operation, reason, worker, line }) = error else {
        return Value::Null;
    };
    json!({
        "seconds": now.saturating_sub(*at).as_secs_f64(),
        "operation": operation,
        "reason": reason,
        "worker": worker,
        "line": line,
    })
}

/// Returns the minutes as one list for each value, which is short.
pub fn hour(minutes: &[MinuteStatus]) -> Value {
    let list =
        |value: &dyn Fn(&MinuteStatus) -> Value| -> Value { minutes.iter().map(value).collect() };
    let lists: [(&str, Value); 9] = [
        ("seconds", list(&|of| json!(of.begin))),
        ("used_seconds", list(&|of| json!(of.used.as_secs_f64()))),
        ("workers", list(&|of| json!(of.workers))),
        ("sessions", list(&|of| json!(of.sessions))),
        ("bytes", list(&|of| json!(of.bytes))),
        ("spilled_bytes", list(&|of| json!(of.spilled))),
        ("moves", list(&|of| json!(of.moves))),
        ("recoveries", list(&|of| json!(of.recoveries))),
        ("losses", list(&|of| json!(of.losses))),
    ];
    let lists = lists.into_iter().map(|(name, list)| (name.to_string(), list));
    Value::Object(lists.collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use gt_ir::SessionId;
    use gt_ir::status::cluster_event::MoveReason;

    use super::*;

    #[test]
    fn an_event_has_the_fields_of_its_kind() {
        let session = SessionLabel { number: SessionId(3), name: "train <b> #3".into() };
        let (from, to) = ("w0".into(), "w1".into());
        let reason = MoveReason::Drain;
        let kind =
            ClusterEventKind::SlotsMoved { session, from, to, slots: 2, bytes: 4096, reason };
        let moved = ClusterEvent { number: 7, at: Duration::from_millis(1500), kind };
        assert_eq!(
            event(&moved),
            json!({
                "number": 7, "seconds": 1.5, "kind": "slots_moved", "session": 3,
                "name": "train <b> #3", "from": "w0", "to": "w1", "slots": 2, "bytes": 4096,
                "reason": "drain",
            })
        );
        let kind = ClusterEventKind::WorkerLost { worker: "w0".into(), reason: "gone".into() };
        let lost = event(&ClusterEvent { number: 8, at: Duration::ZERO, kind });
        assert_eq!((&lost["kind"], &lost["worker"]), (&json!("worker_lost"), &json!("w0")));
        assert_eq!(lost.get("session"), None);
    }

    #[test]
    fn the_hour_has_a_list_for_each_value() {
        let minute = |begin| MinuteStatus {
            begin,
            used: Duration::from_millis(2500),
            losses: 1,
            ..MinuteStatus::default()
        };
        let lists = hour(&[minute(0), minute(60)]);
        assert_eq!(lists["seconds"], json!([0, 60]));
        assert_eq!(lists["used_seconds"], json!([2.5, 2.5]));
        assert_eq!((&lists["losses"], &lists["moves"]), (&json!([1, 1]), &json!([0, 0])));
        assert_eq!(hour(&[])["bytes"], json!([]));
    }
}
