//! The table of users: a line for each, with the limits, holdings and usage of its sessions; and a
//! line for each team, if there are any.

use gt_ir::status::{TeamStatus, UserStatus, WINDOWS};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

use super::cut;
use crate::words::{bytes, duration, used_of};

/// The names of the columns.
pub(super) fn head(window: usize, width: u16) -> Line<'static> {
    let text = format!(
        "{:<16} {:<12} {:>8} {:>6} {:>6} {:>11} {:>9} {:>13}  {}",
        "user",
        "team",
        "sessions",
        "weight",
        "share",
        window_head(window),
        "device",
        "memory",
        "quotas"
    );
    Line::styled(cut(&text, usize::from(width)), Style::new().add_modifier(Modifier::BOLD))
}

/// `in 10s`: the head of the column of device time in a window.
pub(super) fn window_head(window: usize) -> String {
    format!("in {}", WINDOWS[window].0)
}

pub(super) fn line(user: &UserStatus, window: usize, width: u16) -> Line<'static> {
    let text = format!(
        "{:<16} {:<12} {:>8} {:>6} {:>5.0}% {:>11} {:>9} {:>13}  {}",
        cut(name(user), 16),
        cut(or_dash(&user.entitlement.team), 12),
        user.sessions,
        user.entitlement.user_weight,
        100.0 * user.share,
        used_of(&user.windows[window]),
        duration(user.busy.as_secs_f64()),
        memory(user),
        quotas(user)
    );
    Line::raw(cut(&text, usize::from(width)))
}

/// Returns the line of a team, which is that of a user without a name of its own.
pub(super) fn team(team: &TeamStatus, window: usize, width: u16) -> Line<'static> {
    let text = format!(
        "{:<16} {:<12} {:>8} {:>6} {:>5.0}% {:>11} {:>9} {:>13}",
        "(team)",
        cut(or_dash(&team.name), 12),
        team.sessions,
        team.weight,
        100.0 * team.share,
        used_of(&team.windows[window]),
        duration(team.busy.as_secs_f64()),
        held(team.bytes, team.spilled)
    );
    Line::raw(cut(&text, usize::from(width)))
}

/// Returns a user's name; a dash for all users without a key of their own.
pub(in crate::top) fn name(user: &UserStatus) -> &str {
    or_dash(&user.entitlement.user)
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}

/// Returns what the sessions hold in memory and, if any, elsewhere.
pub(in crate::top) fn memory(user: &UserStatus) -> String {
    held(user.bytes, user.spilled)
}

fn held(memory: u64, spilled: u64) -> String {
    match spilled {
        0 => bytes(memory),
        spilled => format!("{}+{}", bytes(memory), bytes(spilled)).replace(' ', ""),
    }
}

/// `user ada 1.0 GB, team vision 4.0 GB`
pub(in crate::top) fn quotas(user: &UserStatus) -> String {
    let quotas = user.entitlement.memory.iter();
    let quotas: Vec<String> =
        quotas.map(|quota| format!("{} {}", quota.holder, bytes(quota.bytes))).collect();
    if quotas.is_empty() { "-".into() } else { quotas.join(", ") }
}
