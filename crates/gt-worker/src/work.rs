//! A worker as drivers see it.

use std::time::Duration;

use gt_ir::message::{Message, WorkerStats};
use gt_ir::{Joint, Piece, WorkerId};

/// What a worker sends, and to whom.
#[derive(Clone, PartialEq, Debug)]
pub enum Out {
    Dispatcher(Message),
    Worker(WorkerId, Piece),
}

/// How a worker runs.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many instructions that follow one another are given to the engine at once; 1 for each by
    /// itself.
    pub batch_size: usize,
    /// Whether an operation fails that makes a NaN of numbers that are none.
    pub check_nan: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { batch_size: 1, check_nan: false }
    }
}

/// A worker with any engine.
///
/// A driver hands over what comes, which costs little, and then lets the worker compute turn by
/// turn for as long as there is something to do; between turns it hands over what has come.
pub trait Work: Send {
    /// Takes a message from the dispatcher or another worker. Nothing is computed yet.
    fn handle(&mut self, message: Message, out: &mut Vec<Out>);

    /// Computes a turn of one lane. Whether there was anything to do.
    fn step(&mut self, out: &mut Vec<Out>) -> bool;

    /// The joint exchange that is due: all its members are ready. The driver is to send all that
    /// was put onto `out`, which others may wait for, and then have the worker [`Work::join`].
    fn due(&self) -> Option<&Joint>;

    /// Carries out what is due, together with the other members, for which it waits.
    fn join(&mut self, out: &mut Vec<Out>);

    fn stats(&self) -> WorkerStats;

    /// What is left once all sessions are over, if anything is: for tests.
    fn leftovers(&self) -> Option<String>;

    /// How much work its engine does in a second, as an estimate: see [`gt_ir::Operation::work`].
    fn rate(&self) -> u64;

    /// Whether to emit events from now on. Their times are by the clock that shows `now`: the
    /// dispatcher's own in its process, and elsewhere one that it translates.
    fn observe(&mut self, on: bool, now: Duration);

    /// Puts the events that were not sent yet onto `out`: for drivers with nothing else to do.
    fn report(&mut self, out: &mut Vec<Out>);

    /// The process has forked, and this is the child.
    fn after_fork(&mut self);
}
