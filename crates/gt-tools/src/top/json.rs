//! What `gt top` shows, as JSON: for scripts, and for the web page.

use std::time::Duration;

use gt_ir::entitlement::Entitlement;
use gt_ir::event::Activity;
use gt_ir::gpu::GpuStatus;
use gt_ir::publication::PublicationStatus;
use gt_ir::statistics::Sequence;
use gt_ir::status::{
    HotPathReport, NamedSession, SessionStatus, Status, TeamStatus, UserStatus, WINDOWS, WindowUse,
    WorkerStatus,
};
use serde_json::{Map, Value, json};

use super::history;
use super::model::Model;
use super::view::waits;

/// Returns the newest status, with rates since the one before; null before the first.
pub fn status(model: &Model, title: &str) -> Value {
    let Some(status) = &model.status else { return Value::Null };
    json!({
        "dispatcher": title,
        "seconds": status.now.as_secs_f64(),
        "dropped": status.dropped,
        "workers": list(&status.workers, |of| worker(of, model, status)),
        "sessions": list(&status.sessions, |of| session(of, model, status.now)),
        "users": list(&status.users, user),
        "teams": list(&status.teams, team),
        "publications": list(&status.publications, publication),
        "events": model.events.iter().map(history::event).collect::<Vec<_>>(),
        "hour": history::hour(&status.hour),
    })
}

fn list<T>(of: &[T], each: impl Fn(&T) -> Value) -> Value {
    of.iter().map(each).collect()
}

fn worker(worker: &WorkerStatus, model: &Model, status: &Status) -> Value {
    let shares = model.shares(worker);
    let kinds = Activity::ALL.into_iter().zip(shares.of);
    let activities: Map<String, Value> =
        kinds.map(|(activity, share)| (activity.name().into(), json!(share))).collect();
    let told = |number: u64| worker.report.is_received().then_some(number);
    let busy_for = worker.busy_since.map(|since| status.now.saturating_sub(since).as_secs_f64());
    json!({
        "number": worker.number,
        "name": worker.name,
        "machine": Some(&worker.host).filter(|host| !host.is_empty()),
        "rack": Some(&worker.rack).filter(|rack| !rack.is_empty()),
        "draining": worker.is_draining,
        "engine": worker.report.is_received().then_some(&worker.report.engine),
        "version": worker.report.is_received().then_some(&worker.report.version),
        "memory_limit": worker.report.memory_limit,
        "idle": 1.0 - shares.busy(),
        "busy_for": busy_for,
        "busy_seconds": worker.busy.as_secs_f64(),
        "activities": activities,
        "untold": shares.untold,
        "queue": worker.in_flight,
        "batches": worker.batches,
        "operations": told(worker.report.operations),
        "failed": told(worker.report.failed),
        "tensors": told(worker.report.tensors),
        "bytes": told(worker.report.bytes),
        "bytes_peak": told(worker.report.bytes_peak),
        "spilled_tensors": told(worker.report.spilled_tensors),
        "spilled_bytes": told(worker.report.spilled_bytes),
        "snapshot_bytes": told(worker.report.snapshot_bytes),
        "snapshot_disk_bytes": told(worker.report.snapshot_disk_bytes),
        "gpu": worker.report.gpu.as_ref().map(gpu),
        "hot_paths": worker.report.is_received().then(|| hot_paths(&worker.report.hot_paths)),
    })
}

fn hot_paths(report: &HotPathReport) -> Value {
    let HotPathReport { instructions, sequences, compilation, top } = report;
    let program = |of: &Sequence| {
        json!({
            "operations": of.operations,
            "length": of.length,
            "repetitions": of.repetitions,
            "seconds": of.time.as_secs_f64(),
        })
    };
    json!({
        "instructions": instructions,
        "sequences": sequences,
        "cache_size": compilation.cache_size,
        "cache_hits": compilation.cache_hits,
        "cache_misses": compilation.cache_misses,
        "checked": compilation.checked,
        "failures": compilation.failures,
        "compile_seconds": compilation.compile_time.as_secs_f64(),
        "saved_seconds": compilation.time_saved.as_secs_f64(),
        "top": list(top, program),
    })
}

fn gpu(gpu: &GpuStatus) -> Value {
    let reading = gpu.reading.unwrap_or_default();
    json!({
        "name": gpu.name,
        "index": gpu.index,
        "uuid": gpu.uuid,
        "used_percent": reading.percent,
        "used_bytes": reading.memory.map(|memory| memory.used),
        "total_bytes": reading.memory.map(|memory| memory.total),
    })
}

fn session(session: &SessionStatus, model: &Model, now: Duration) -> Value {
    let rates = model.rates(session);
    json!({
        "number": session.number.0,
        "name": session.name,
        "program": session.origin.program,
        "login": session.origin.user,
        "host": session.origin.host,
        "away": session.entitlement.is_away,
        "slots": session.slots.iter().map(|(_, worker)| worker).collect::<Vec<_>>(),
        "seconds": now.saturating_sub(session.since).as_secs_f64(),
        "instructions": session.instructions,
        "hot_instructions": session.hot_instructions,
        "rate": rates.instructions,
        "used": rates.used,
        "open": session.open,
        "queued": session.queued,
        "bytes": session.bytes,
        "spilled_bytes": session.spilled,
        "recoveries": session.recoveries,
        "unkept": session.unkept,
        "tensors": session.tensors,
        "named": session.named.as_ref().map(|of| named(of, now)),
        "memory_quotas": quotas(&session.entitlement),
        "weights": {
            "team": session.entitlement.team_weight,
            "user": session.entitlement.user_weight,
            "session": session.entitlement.weight,
        },
        "priority": session.entitlement.priority,
        "user": session.entitlement.user,
        "team": session.entitlement.team,
        "share": session.share,
        "device_seconds": session.busy.as_secs_f64(),
        "anticipated_seconds": session.anticipated.as_secs_f64(),
        "anticipations": session.anticipations,
        "windows": windows(&session.windows),
        "behind": session.behind,
        "waits_for": waits(session, now),
        "last_error": history::last_error(session.last_error.as_ref(), now),
    })
}

fn named(named: &NamedSession, now: Duration) -> Value {
    json!({
        "name": named.name,
        "private": named.is_private,
        "detached": named.is_detached,
        "seconds": now.saturating_sub(named.since).as_secs_f64(),
        "kept": named.kept,
    })
}

fn user(user: &UserStatus) -> Value {
    json!({
        "user": user.entitlement.user,
        "team": user.entitlement.team,
        "sessions": user.sessions,
        "weights": { "team": user.entitlement.team_weight, "user": user.entitlement.user_weight },
        "priority": user.entitlement.priority,
        "share": user.share,
        "device_seconds": user.busy.as_secs_f64(),
        "windows": windows(&user.windows),
        "bytes": user.bytes,
        "spilled_bytes": user.spilled,
        "memory_quotas": quotas(&user.entitlement),
    })
}

fn team(team: &TeamStatus) -> Value {
    json!({
        "team": team.name,
        "weight": team.weight,
        "sessions": team.sessions,
        "share": team.share,
        "device_seconds": team.busy.as_secs_f64(),
        "windows": windows(&team.windows),
        "bytes": team.bytes,
        "spilled_bytes": team.spilled,
    })
}

fn publication(publication: &PublicationStatus) -> Value {
    json!({
        "name": publication.name,
        "version": publication.version,
        "audience": publication.audience.to_string(),
        "description": publication.description,
        "at": publication.at,
        "tensors": publication.tensors,
        "bytes": publication.bytes,
        "readers": publication.readers,
        "visible": publication.is_visible,
        "withdrawn": publication.is_withdrawn,
    })
}

fn quotas(entitlement: &Entitlement) -> Value {
    list(&entitlement.memory, |quota| json!({"of": quota.holder, "bytes": quota.bytes}))
}

/// Returns windows by name, each with its seconds of device time.
fn windows(of: &[WindowUse; WINDOWS.len()]) -> Value {
    let each = WINDOWS.iter().zip(of).map(|((name, _), window)| {
        let (entitled, used) = (window.entitled.as_secs_f64(), window.used.as_secs_f64());
        (name.to_string(), json!({"entitled_seconds": entitled, "used_seconds": used}))
    });
    Value::Object(each.collect())
}
