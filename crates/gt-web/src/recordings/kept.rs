//! The recordings of a page: the one that runs, and the newest that have ended.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};

use super::columns::Columns;
use super::request::RecordingRequest;

/// The number of recordings that are kept, and the bytes of all of them; the newest is kept whatever
/// its size, which has a limit of its own.
const COUNT: usize = 8;
const BYTES: usize = 128 << 20;

/// What a recording has led to.
pub struct RecordingOutcome {
    pub columns: Arc<Columns>,
    /// The number of lost events.
    pub dropped: u64,
    /// Why it has ended early, if it has.
    pub ended: Option<String>,
}

/// All recordings, oldest first.
pub struct KeptRecordings {
    all: Mutex<List>,
    is_stopping: AtomicBool,
}

struct List {
    last: u64,
    recordings: VecDeque<KeptRecording>,
    bytes_max: usize,
}

impl Default for KeptRecordings {
    fn default() -> KeptRecordings {
        KeptRecordings::with_limit(BYTES)
    }
}

struct KeptRecording {
    number: u64,
    asked: RecordingRequest,
    begun: Instant,
    state: State,
}

enum State {
    /// It has recorded this many events so far.
    Running(Arc<AtomicUsize>),
    Ready(RecordingOutcome),
    Failed(String),
}

impl KeptRecordings {
    /// No recordings; those that are added have at most `bytes_max` bytes together.
    fn with_limit(bytes_max: usize) -> KeptRecordings {
        let all = Mutex::new(List { last: 0, recordings: VecDeque::new(), bytes_max });
        KeptRecordings { all, is_stopping: AtomicBool::new(false) }
    }

    /// Begins a recording, unless one runs.
    pub fn begin(self: &Arc<KeptRecordings>, asked: RecordingRequest) -> Option<RunningRecording> {
        let mut all = self.lock();
        let is_running = |of: &KeptRecording| matches!(of.state, State::Running(_));
        if all.recordings.iter().any(is_running) {
            return None;
        }
        all.last += 1;
        let (number, events) = (all.last, Arc::new(AtomicUsize::new(0)));
        let state = State::Running(events.clone());
        all.recordings.push_back(KeptRecording { number, asked, begun: Instant::now(), state });
        all.limit();
        Some(RunningRecording { kept: self.clone(), number, events })
    }

    /// Ends the recording that runs.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
    }

    /// Forgets a recording.
    pub fn remove(&self, number: u64) {
        self.lock().recordings.retain(|of| of.number != number);
    }

    /// Returns the timeline of a recording that is ready.
    pub fn columns(&self, number: u64) -> Option<Arc<Columns>> {
        let all = self.lock();
        match &all.recordings.iter().find(|of| of.number == number)?.state {
            State::Ready(outcome) => Some(outcome.columns.clone()),
            _ => None,
        }
    }

    /// Returns the recordings, newest first.
    pub fn list(&self) -> Value {
        let all = self.lock();
        let each: Vec<Value> = all.recordings.iter().rev().map(KeptRecording::describe).collect();
        json!({ "recordings": each })
    }

    fn finish(&self, number: u64, state: State) {
        let mut all = self.lock();
        if let Some(of) = all.recordings.iter_mut().find(|of| of.number == number) {
            of.state = state;
        }
        all.limit();
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl List {
    /// Forgets the oldest recordings that exceed the limits.
    fn limit(&mut self) {
        let bytes = |of: &KeptRecording| match &of.state {
            State::Ready(outcome) => outcome.columns.bytes().len(),
            _ => 0,
        };
        while self.recordings.len() > COUNT
            || self.recordings.len() > 1
                && self.recordings.iter().map(bytes).sum::<usize>() > self.bytes_max
        {
            self.recordings.pop_front();
        }
    }
}

impl KeptRecording {
    fn describe(&self) -> Value {
        let RecordingRequest { seconds, session } = self.asked;
        let age = self.begun.elapsed().as_secs_f64();
        let mut value =
            json!({ "number": self.number, "seconds": seconds, "session": session, "age": age });
        let more = match &self.state {
            State::Running(events) => {
                json!({ "state": "recording", "events": events.load(Ordering::Relaxed) })
            }
            State::Ready(RecordingOutcome { columns, dropped, ended }) => json!({
                "state": "ready", "events": columns.len(), "bytes": columns.bytes().len(),
                "dropped": dropped, "ended": ended,
            }),
            State::Failed(error) => json!({ "state": "failed", "error": error }),
        };
        if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
            value.extend(more);
        }
        value
    }
}

/// A recording that runs. It has failed if it is dropped before its end.
pub struct RunningRecording {
    kept: Arc<KeptRecordings>,
    number: u64,
    events: Arc<AtomicUsize>,
}

impl RunningRecording {
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Notes the number of events so far, and returns whether to go on.
    pub fn advance(&self, events: usize) -> bool {
        self.events.store(events, Ordering::Relaxed);
        !self.kept.is_stopping.load(Ordering::Acquire)
    }

    /// Ends it.
    pub fn finish(&self, outcome: Result<RecordingOutcome, String>) {
        let state = outcome.map_or_else(State::Failed, State::Ready);
        self.kept.finish(self.number, state);
    }
}

impl Drop for RunningRecording {
    fn drop(&mut self) {
        let mut all = self.kept.lock();
        let mut own = all.recordings.iter_mut().filter(|of| of.number == self.number);
        if let Some(of) = own.find(|of| matches!(of.state, State::Running(_))) {
            of.state = State::Failed("the recording could not be completed".into());
        }
    }
}

#[cfg(test)]
mod tests {
    use gt_tools::timeline::Timeline;
    use gt_tools::trace::Recorded;

    use super::*;

    const ASKED: RecordingRequest = RecordingRequest { seconds: 1, session: None };

    fn outcome() -> RecordingOutcome {
        let recorded = Recorded { events: 0, dropped: 0, title: "x".into(), ended: None };
        let columns = Arc::new(Columns::of(&Timeline::default(), &recorded, None));
        RecordingOutcome { columns, dropped: 0, ended: None }
    }

    fn numbers(kept: &KeptRecordings) -> Vec<u64> {
        let list = kept.list();
        let each = list["recordings"].as_array().unwrap().iter();
        each.map(|of| of["number"].as_u64().unwrap()).collect()
    }

    #[test]
    fn one_runs_at_a_time_and_the_newest_are_kept() {
        let kept = Arc::new(KeptRecordings::default());
        for _ in 0..COUNT + 3 {
            let running = kept.begin(ASKED).unwrap();
            assert!(kept.begin(ASKED).is_none());
            running.finish(Ok(outcome()));
        }
        let last = COUNT as u64 + 3;
        assert_eq!(numbers(&kept), (4..=last).rev().collect::<Vec<_>>());
        assert!(kept.columns(3).is_none() && kept.columns(4).is_some());
        kept.remove(last);
        assert!(kept.columns(last).is_none());
    }

    #[test]
    fn the_oldest_are_forgotten_for_the_bytes_of_the_newest() {
        let each = outcome().columns.bytes().len();
        for (bytes_max, expected) in [(3 * each, vec![4, 3, 2]), (each / 2, vec![4])] {
            let kept = Arc::new(KeptRecordings::with_limit(bytes_max));
            for _ in 0..4 {
                kept.begin(ASKED).unwrap().finish(Ok(outcome()));
            }
            assert_eq!(numbers(&kept), expected);
        }
    }

    #[test]
    fn one_that_is_not_completed_has_failed() {
        let kept = Arc::new(KeptRecordings::default());
        drop(kept.begin(ASKED).unwrap());
        assert_eq!(kept.list()["recordings"][0]["state"], "failed");
        let running = kept.begin(ASKED).unwrap();
        assert!(running.advance(7));
        assert_eq!(kept.list()["recordings"][0]["events"], 7);
        kept.stop();
        assert!(!running.advance(8));
    }
}
