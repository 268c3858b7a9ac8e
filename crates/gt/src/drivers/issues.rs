//! When a client issues its batches, noted while somebody watches.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use gt_ir::event::{Event, Kind, Lane};

/// What is noted of one client. Times that it is given are on the client's own clock.
#[derive(Default)]
pub struct Issues {
    is_on: AtomicBool,
    /// How far the dispatcher's clock is ahead, in nanoseconds.
    ahead: AtomicI64,
    /// Since when a batch is gathered, in nanoseconds; 0 for none.
    since: AtomicU64,
}

impl Issues {
    /// Begins to note, or ends; `there` is the dispatcher's clock when the client's shows `here`.
    pub fn observe(&self, on: bool, here: Duration, there: Duration) {
        let ahead = there.as_nanos() as i64 - here.as_nanos() as i64;
        self.ahead.store(ahead, Ordering::Relaxed);
        self.since.store(0, Ordering::Relaxed);
        self.is_on.store(on, Ordering::Relaxed);
    }

    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// A batch has its first command.
    pub fn begin(&self, here: Duration) {
        self.since.store(here.as_nanos() as u64, Ordering::Relaxed);
    }

    /// A batch of so many instructions is sent.
    pub fn end(&self, here: Duration, count: u64) -> Event {
        let here = here.as_nanos() as u64;
        let since = match self.since.swap(0, Ordering::Relaxed) {
            0 => here,
            since => since,
        };
        let ahead = self.ahead.load(Ordering::Relaxed);
        let there = |time: u64| Duration::from_nanos(time.saturating_add_signed(ahead));
        // The dispatcher knows whose it is.
        Event::of_batch(Kind::Issue, Lane::Client, 0, count, (there(since), there(here)))
    }
}
