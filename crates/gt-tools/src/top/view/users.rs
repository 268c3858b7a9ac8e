//! The table of users: a line for each, with the limits, holdings and usage of its sessions.

use gt_ir::status::UserStatus;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

use super::cut;
use crate::words::{bytes, duration};

/// The names of the columns.
pub(super) fn head(width: u16) -> Line<'static> {
    let text = format!(
        "{:<16} {:<12} {:>8} {:>6} {:>6} {:>9} {:>13}  {}",
        "user", "team", "sessions", "weight", "share", "device", "memory", "quotas"
    );
    Line::styled(cut(&text, usize::from(width)), Style::new().add_modifier(Modifier::BOLD))
}

pub(super) fn line(user: &UserStatus, width: u16) -> Line<'static> {
    let text = format!(
        "{:<16} {:<12} {:>8} {:>6} {:>5.0}% {:>9} {:>13}  {}",
        cut(name(user), 16),
        cut(or_dash(&user.entitlement.team), 12),
        user.sessions,
        user.entitlement.user_weight,
        100.0 * user.share,
        duration(user.busy.as_secs_f64()),
        memory(user),
        quotas(user)
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
    match user.spilled {
        0 => bytes(user.bytes),
        spilled => format!("{}+{}", bytes(user.bytes), bytes(spilled)).replace(' ', ""),
    }
}

/// `user ada 1.0 GB, team vision 4.0 GB`
pub(in crate::top) fn quotas(user: &UserStatus) -> String {
    let quotas = user.entitlement.memory.iter();
    let quotas: Vec<String> =
        quotas.map(|quota| format!("{} {}", quota.holder, bytes(quota.bytes))).collect();
    if quotas.is_empty() { "-".into() } else { quotas.join(", ") }
}
