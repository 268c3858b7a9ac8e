//! The client's events, when batches are issued; and the lines of its program, for watchers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use gt_ir::event::{EmitLevel, Event, EventKind, Track};
use gt_ir::message::ClientToServer;
use gt_ir::{SessionId, SourceId};

/// The events of one client, in times of its own clock.
#[derive(Default)]
pub struct Issues {
    is_on: AtomicBool,
    /// When the current batch got its first command, in nanoseconds; 0 for none.
    since: AtomicU64,
}

impl Issues {
    /// Sets what is emitted: events, or nothing.
    pub fn observe(&self, level: EmitLevel) {
        let on = level == EmitLevel::Events;
        if self.is_on.swap(on, Ordering::Relaxed) != on {
            self.since.store(0, Ordering::Relaxed);
        }
    }

    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Records the time of a batch's first command.
    pub fn begin(&self, now: Duration) {
        self.since.store(now.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Emits the event of a sent batch of `count` instructions.
    pub fn end(&self, now: Duration, count: u64) -> Event {
        let since = match self.since.swap(0, Ordering::Relaxed) {
            0 => now,
            since => Duration::from_nanos(since).min(now),
        };
        // The dispatcher fills in the session.
        Event::of_batch(EventKind::Issue, Track::Client, SessionId::NONE, count, (since, now))
    }
}

/// Answers a dispatcher that asks for lines of the user's program.
pub fn lines(asked: Vec<SourceId>) -> ClientToServer {
    let text = |line| (line, gt_client::source::short(line).unwrap_or_default());
    ClientToServer::Lines { lines: asked.into_iter().map(text).collect() }
}
