//! What `gt top` shows, as text.

use std::fmt::Write;

use gt_ir::event::Activity;
use gt_ir::gpu::GpuStatus;
use gt_ir::status::Report;

use super::model::Model;
use super::view::{users, waits};
use crate::words::{UNKNOWN, bytes, duration, held, number, windows};

/// Returns a status as text.
pub fn plain(model: &Model, title: &str) -> String {
    let mut out = String::new();
    let Some(status) = &model.status else { return out };
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{title}, up {:.0} s, {} instructions/s",
        status.now.as_secs_f64(),
        number(model.rate())
    );
    for worker in &status.workers {
        let shares = model.shares(worker);
        let mut parts: Vec<(Activity, f64)> =
            Activity::ALL.into_iter().zip(shares.of).filter(|(_, share)| *share >= 0.005).collect();
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        let parts: Vec<String> = parts
            .iter()
            .map(|(of, share)| format!("{} {:.0} %", of.name(), 100.0 * share))
            .chain(
                (shares.untold >= 0.005).then(|| format!("untold {:.0} %", 100.0 * shares.untold)),
            )
            .collect();
        let _ = writeln!(
            out,
            "worker {} ({}): idle {:.0} %, queue {}, {}{}{}{}{}",
            worker.name,
            if worker.report.is_received() { &worker.report.engine } else { UNKNOWN },
            100.0 * (1.0 - shares.busy()),
            worker.in_flight,
            held(worker.report.is_received(), worker.report.bytes),
            elsewhere(&worker.report),
            worker.report.gpu.as_ref().map(gpu).unwrap_or_default(),
            if parts.is_empty() { "" } else { ", " },
            parts.join(", ")
        );
    }
    for session in &status.sessions {
        let rates = model.rates(session);
        let _ = writeln!(
            out,
            "session {}: {}/s, uses {:.0} % of all workers, share {:.0} %, used {}, {}, slots on {}, waits for {}",
            session.name,
            number(rates.instructions),
            100.0 * rates.used,
            100.0 * session.share,
            windows(&session.windows),
            bytes(session.bytes),
            carriers(&session.slots),
            waits(session, status.now)
        );
    }
    for user in &status.users {
        let of = match user.entitlement.team.as_str() {
            "" => String::new(),
            team => format!(" of team {team}"),
        };
        let _ = writeln!(
            out,
            "user {}{of}: {} session{}, share {:.0} %, used {}, {} of device time, {}, quotas {}",
            users::name(user),
            user.sessions,
            if user.sessions == 1 { "" } else { "s" },
            100.0 * user.share,
            windows(&user.windows),
            duration(user.busy.as_secs_f64()),
            users::memory(user),
            users::quotas(user)
        );
    }
    for team in status.teams.iter().filter(|team| !team.name.is_empty()) {
        let _ = writeln!(
            out,
            "team {}: {} session{}, share {:.0} %, used {}, {} of device time",
            team.name,
            team.sessions,
            if team.sessions == 1 { "" } else { "s" },
            100.0 * team.share,
            windows(&team.windows),
            duration(team.busy.as_secs_f64()),
        );
    }
    out
}

/// Returns `, 1.5 GB written away, snapshots 20.0 MB and 1.0 GB on disk`, without zero parts.
fn elsewhere(report: &Report) -> String {
    let mut text = String::new();
    if report.spilled_bytes > 0 {
        let _ = write!(text, ", {} written away", bytes(report.spilled_bytes));
    }
    match (report.snapshot_bytes, report.snapshot_disk_bytes) {
        (0, 0) => {}
        (memory, 0) => text += &format!(", snapshots {}", bytes(memory)),
        (0, disk) => text += &format!(", snapshots {} on disk", bytes(disk)),
        (memory, disk) => {
            text += &format!(", snapshots {} and {} on disk", bytes(memory), bytes(disk));
        }
    }
    text
}

/// Returns `, NVIDIA H200 (GPU 3) 87 % used, 12.3 GB of 150.1 GB`, as far as that is known.
fn gpu(gpu: &GpuStatus) -> String {
    let mut text = format!(", {}", gpu.name);
    if let Some(index) = gpu.index {
        let _ = write!(text, " (GPU {index})");
    }
    let reading = gpu.reading.unwrap_or_default();
    if let Some(percent) = reading.percent {
        let _ = write!(text, " {percent} % used");
    }
    if let Some(memory) = reading.memory {
        let _ = write!(text, ", {} of {}", bytes(memory.used), bytes(memory.total));
    }
    text
}

/// Returns `gpu0 x 2, gpu1`: the workers that host slots, with the number of slots.
fn carriers(slots: &[(u32, String)]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for (_, worker) in slots {
        let worker = if worker.is_empty() { "no worker" } else { worker };
        match counts.iter_mut().find(|(name, _)| *name == worker) {
            Some((_, count)) => *count += 1,
            None => counts.push((worker, 1)),
        }
    }
    let each = |(name, count): (&str, usize)| match count {
        1 => name.to_string(),
        _ => format!("{name} x {count}"),
    };
    match counts.is_empty() {
        true => UNKNOWN.into(),
        false => counts.into_iter().map(each).collect::<Vec<_>>().join(", "),
    }
}
