//! Leaving: a worker that is to be stopped hands over what it has first.

use std::time::{Duration, Instant};

use gt_ir::message::WorkerToServer;
use gt_net::NetError;

use super::WorkerProcess;

/// How much longer than the server a worker waits for the end of its drain.
const MARGIN: Duration = Duration::from_secs(1);

/// What the program around a worker wants of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkerAsk {
    /// It serves.
    Nothing,
    /// It hands over what it has, and ends.
    Leave,
    /// It ends now.
    Stop,
}

/// How a worker has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkerOutcome {
    /// It was stopped.
    Stopped,
    /// All that it had is elsewhere, or in the folder of its state.
    Drained,
}

/// The progress of a worker's leaving.
pub(super) struct Leave {
    within: Duration,
    /// When it ends without having handed everything over; `None` while it is not to leave.
    until: Option<Instant>,
    state: LeaveState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LeaveState {
    Serving,
    /// Everything is handed over.
    Drained,
    /// The server has refused, or given up: the worker ends without.
    Refused,
}

impl Leave {
    pub fn new(within: Duration) -> Leave {
        Leave { within, until: None, state: LeaveState::Serving }
    }

    /// Returns whether all that it had is handed over.
    pub fn is_drained(&self) -> bool {
        self.state == LeaveState::Drained
    }

    /// Handles the end of the worker's drain, which was refused if there is a reason.
    pub fn ended(&mut self, refused: Option<String>) {
        match refused {
            None => self.state = LeaveState::Drained,
            Some(reason) if self.until.is_some() => {
                tracing::warn!("the worker ends without handing over what it has: {reason}");
                self.state = LeaveState::Refused;
            }
            // An operator had asked, and knows.
            Some(_) => {}
        }
    }
}

impl WorkerProcess {
    /// Begins to leave if it is asked to. Returns whether the worker serves on.
    pub(super) fn may_serve(&mut self, asked: WorkerAsk) -> Result<bool, NetError> {
        let within = self.leave.within;
        match (asked, self.leave.until) {
            (WorkerAsk::Stop, _) => return Ok(false),
            (WorkerAsk::Nothing, _) => {}
            (WorkerAsk::Leave, None) if within.is_zero() => return Ok(false),
            (WorkerAsk::Leave, None) => {
                self.leave.until = Some(Instant::now() + within + MARGIN);
                self.send(&WorkerToServer::Drain { within })?;
            }
            (WorkerAsk::Leave, Some(until)) => {
                let is_late = Instant::now() >= until;
                if is_late {
                    tracing::warn!(
                        "the worker ends without handing over what it has: the server has not answered for {} s",
                        (within + MARGIN).as_secs()
                    );
                }
                return Ok(!is_late && self.leave.state != LeaveState::Refused);
            }
        }
        Ok(true)
    }
}
