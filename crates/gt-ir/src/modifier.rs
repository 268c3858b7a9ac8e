//! Stream modifiers: whatever transforms a stream of commands on its way.

use crate::command::ClientCommand;

/// Takes commands in and puts commands out. A modifier only transforms: it neither executes,
/// waits nor keeps commands back for later.
pub trait Modifier: Send {
    /// The name under which its statistics are shown.
    fn name(&self) -> &'static str;

    /// Puts onto `out` what `command` becomes: itself, others, or nothing.
    fn process(&mut self, command: ClientCommand, out: &mut Vec<ClientCommand>);

    /// What it has done so far, as names and counts.
    fn get_stats(&self) -> Vec<(&'static str, u64)>;
}
