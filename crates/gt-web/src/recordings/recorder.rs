//! What records: a watcher of the page's dispatcher.

use std::time::Duration;

use gt_tools::find::WatchTarget;
use gt_tools::timeline::Timeline;
use gt_tools::trace::{Recorded, RecordingLimits, record_timeline};

/// The most events of a recording.
pub const EVENTS: usize = 1_000_000;

/// Records what a dispatcher does.
pub trait EventRecorder: Send + Sync + 'static {
    /// Records for a time.
    ///
    /// `go_on` is called several times a second with the number of events so far; a false result
    /// ends the recording.
    ///
    /// # Errors
    /// The dispatcher cannot be watched; the text says why.
    fn record(
        &self,
        duration: Duration,
        go_on: &mut dyn FnMut(usize) -> bool,
    ) -> Result<(Timeline, Recorded), String>;
}

/// Records a dispatcher by a connection of its own for each recording.
pub struct DispatcherRecorder(pub WatchTarget);

impl EventRecorder for DispatcherRecorder {
    fn record(
        &self,
        duration: Duration,
        go_on: &mut dyn FnMut(usize) -> bool,
    ) -> Result<(Timeline, Recorded), String> {
        let limits = RecordingLimits { duration, events: EVENTS };
        record_timeline(&self.0, limits, &mut |count| !go_on(count))
            .map_err(|error| error.to_string())
    }
}
