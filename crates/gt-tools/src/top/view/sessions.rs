//! The table of sessions: a line for each, with what it waits for.

use std::time::Duration;

use gt_ir::status::{SessionStatus, Waits};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

use super::super::keys::SessionOrder;
use super::super::model::Model;
use super::{cut, users};
use crate::words::{bytes, duration, number, used_of};

pub(super) fn sort(sessions: &mut [&SessionStatus], model: &Model, order: SessionOrder) {
    match order {
        SessionOrder::Used => {
            sessions.sort_by(|a, b| model.rates(b).used.total_cmp(&model.rates(a).used))
        }
        SessionOrder::Rate => sessions
            .sort_by(|a, b| model.rates(b).instructions.total_cmp(&model.rates(a).instructions)),
        SessionOrder::Memory => sessions.sort_by_key(|session| std::cmp::Reverse(session.bytes)),
        SessionOrder::Name => sessions.sort_by(|a, b| a.name.cmp(&b.name)),
    }
}

/// The names of the columns.
pub(super) fn head(window: usize, width: u16) -> Line<'static> {
    let name = name_width(width);
    let further = match is_wide(width) {
        true => format!("{:>6} {:>11} ", "share", users::window_head(window)),
        false => String::new(),
    };
    let text = format!(
        "{:<name$} {:>8} {:>6} {further}{:>13}  {}",
        "session", "rate/s", "used", "memory", "waits for"
    );
    Line::styled(cut(&text, usize::from(width)), Style::new().add_modifier(Modifier::BOLD))
}

pub(super) fn line(
    session: &SessionStatus,
    model: &Model,
    now: Duration,
    window: usize,
    width: u16,
) -> Line<'static> {
    let (name, rates) = (name_width(width), model.rates(session));
    let (share, used) = (100.0 * session.share, used_of(&session.windows[window]));
    let further = if is_wide(width) { format!("{share:>5.0}% {used:>11} ") } else { String::new() };
    let text = format!(
        "{:<name$} {:>8} {:>5.0}% {further}{:>13}  {}",
        cut_name(&session.name, name),
        number(rates.instructions),
        100.0 * rates.used,
        memory(session),
        waits(session, now)
    );
    Line::raw(cut(&text, usize::from(width)))
}

/// Returns whether all columns fit.
const fn is_wide(width: u16) -> bool {
    width >= 100
}

const fn name_width(width: u16) -> usize {
    match width {
        ..60 => 10,
        60..100 => 20,
        _ => 28,
    }
}

/// Returns a session's name in `width` characters, with its number.
fn cut_name(name: &str, width: usize) -> String {
    if name.chars().count() <= width {
        return name.to_string();
    }
    let number =
        name.rsplit_once(" #").map_or(String::new(), |(_, number)| format!(".. #{number}"));
    cut(name, width.saturating_sub(number.len())) + &number
}

/// Returns what a session holds in memory and, if any, elsewhere; and the smallest quota that
/// applies to it.
fn memory(session: &SessionStatus) -> String {
    let held = match session.spilled {
        0 => bytes(session.bytes),
        spilled => format!("{}+{}", bytes(session.bytes), bytes(spilled)).replace(' ', ""),
    };
    match session.entitlement.memory.iter().map(|quota| quota.bytes).min() {
        Some(most) => format!("{held}/{}", bytes(most)).replace(' ', ""),
        None => held,
    }
}

/// Returns what a session waits for, and which sessions cause it.
pub(crate) fn waits(session: &SessionStatus, now: Duration) -> String {
    let what = what(session, now);
    match session.behind.as_slice() {
        [] => what,
        [other] => format!("{what}, beside {other}"),
        [first, others @ ..] => format!("{what}, beside {first} and {} more", others.len()),
    }
}

fn what(session: &SessionStatus, now: Duration) -> String {
    if session.named.as_ref().is_some_and(|named| named.is_detached) {
        let open = session.open > 0 || session.waits != Waits::Nothing;
        return if open {
            "its instructions to run; detached".into()
        } else {
            "-; detached".into()
        };
    }
    if session.entitlement.is_away {
        return "its client to connect again".into();
    }
    match &session.waits {
        Waits::Nothing => match session.mean_anticipation() {
            Some(mean) => format!("-; asks again after {}", duration(mean.as_secs_f64())),
            None => "-".into(),
        },
        Waits::Workers => "a worker to come".into(),
        Waits::Room => format!("room for {} instructions", number(session.queued as f64)),
        Waits::Operator => "its resumption: it is paused".into(),
        Waits::Reader => "its client to read what was sent".into(),
        Waits::Copies => "copies of its tensors".into(),
        Waits::Work if session.open == 1 => "1 instruction to run".into(),
        Waits::Work => format!("{} instructions to run", number(session.open as f64)),
        Waits::Value { tensor, worker, since } => {
            let seconds = now.saturating_sub(*since).as_secs_f64();
            format!("{tensor}, on {worker}, {seconds:.1} s")
        }
        Waits::Memory { worker, bytes: need, holder, since } => {
            let seconds = now.saturating_sub(*since).as_secs_f64();
            let of = if holder.is_empty() { String::new() } else { format!(" of {holder}") };
            format!("{} of memory{of} on {worker}, {seconds:.1} s", bytes(*need))
        }
    }
}
