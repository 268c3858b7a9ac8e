//! Stream modifiers: rewrites of a client's stream before it is planned.

use crate::command::ClientCommand;

/// Rewrites commands one by one. A modifier must not execute, wait, or delay commands.
pub trait Modifier: Send {
    /// Returns the name under which its statistics are shown.
    fn name(&self) -> &'static str;

    /// Appends the replacement of `command` to `out`: itself, other commands, or nothing.
    fn process(&mut self, command: ClientCommand, out: &mut Vec<ClientCommand>);

    /// Returns its counters, by name.
    fn get_stats(&self) -> Vec<(&'static str, u64)>;
}
