//! Records a dispatcher's events: into a log, in the format of `GT_INSTRUCTION_LOG` (`gt trace`), or
//! as a timeline.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gt::drivers::watch::Watcher;
use gt_dispatcher::log::Log;
use gt_ir::event::Event;

use crate::error::ToolError;
use crate::find::WatchTarget;
use crate::timeline::line::Line;
use crate::timeline::{Timeline, TimelineBuilder};

/// How often the dispatcher is polled, and for how many events.
const EVERY: Duration = Duration::from_millis(50);
const AT_ONCE: u32 = 1 << 16;
/// The most events that are recorded into a log.
const MOST: usize = 4 << 20;
/// The most bytes of different names and texts in a timeline without a file.
const TEXTS: usize = 16 << 20;

/// A summary of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    pub events: usize,
    /// The number of lost events.
    pub dropped: u64,
    /// The dispatcher that was watched.
    pub title: String,
    /// Why watching ended early, if it did.
    pub ended: Option<String>,
}

/// When a recording ends.
#[derive(Clone, Copy, Debug)]
pub struct RecordingLimits {
    pub duration: Duration,
    /// The most events.
    pub events: usize,
}

/// Records for `duration`, or until `limit` events are recorded or `stop` returns true, and writes
/// them to `path`.
///
/// # Errors
/// No dispatcher is found, or the log cannot be written.
pub fn record(
    target: &WatchTarget,
    duration: Duration,
    limit: Option<usize>,
    path: &Path,
    stop: &mut dyn FnMut() -> bool,
) -> Result<Recorded, ToolError> {
    let limit = limit.unwrap_or(MOST).min(MOST);
    let until = end_of(duration)?;
    let mut watcher = target.watch()?;
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(ToolError::file("making", folder))?;
    }
    // Opened first, so that a path that cannot be written fails at once.
    let file = File::create(path).map_err(ToolError::file("writing", path))?;
    let mut events: Vec<Event> = Vec::new();
    let mut take = |_: &Watcher, new: Vec<Event>| {
        events.extend(new);
        stop()
    };
    let mut recorded = poll(&mut watcher, until, limit, &mut take)?;
    if limit < MOST && recorded.events == limit {
        // It has ended as its user has asked.
        recorded.ended = None;
    }
    events.sort_by_key(|event| event.end);
    write(&watcher, &events, file).map_err(ToolError::file("writing", path))?;
    Ok(recorded)
}

/// Records a timeline without a file.
///
/// `take` is called with the number of events so far, about twenty times a second; a true result
/// ends the recording.
///
/// # Errors
/// No dispatcher is found.
pub fn record_timeline(
    target: &WatchTarget,
    limits: RecordingLimits,
    take: &mut dyn FnMut(usize) -> bool,
) -> Result<(Timeline, Recorded), ToolError> {
    let until = end_of(limits.duration)?;
    let mut watcher = target.watch()?;
    let shared = Arc::new(Mutex::new((TimelineBuilder::default(), 0)));
    let sink = Arc::clone(&shared);
    let mut log = Log::new(Box::new(move |line| {
        let (builder, unread) = &mut *sink.lock().unwrap_or_else(PoisonError::into_inner);
        // A name with the separator of fields would break its line.
        if Line::parse(line).and_then(|line| builder.add(&line)).is_err() {
            *unread += 1;
        }
    }));
    let (mut count, mut is_full) = (0, false);
    let mut add = |watcher: &Watcher, new: Vec<Event>| {
        count += new.len();
        for event in &new {
            log.event(event.end, event, &|named| watcher.name(named).map(str::to_string));
        }
        let (builder, _) = &*shared.lock().unwrap_or_else(PoisonError::into_inner);
        is_full = builder.text_bytes() > TEXTS;
        is_full || take(count)
    };
    let mut recorded = poll(&mut watcher, until, limits.events, &mut add)?;
    if is_full {
        recorded.ended = Some(format!("its names have {} MiB, as many as are kept", TEXTS >> 20));
    }
    let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
    let (builder, unread) = std::mem::take(&mut *shared);
    recorded.events -= unread;
    recorded.dropped += unread as u64;
    Ok((builder.finish(), recorded))
}

fn end_of(duration: Duration) -> Result<Instant, ToolError> {
    let too_long = || ToolError::BadOption(format!("{duration:?} is too long to record"));
    Instant::now().checked_add(duration).ok_or_else(too_long)
}

/// Polls until a time or a number of events, or until `take`, which gets the events, returns true.
fn poll(
    watcher: &mut Watcher,
    until: Instant,
    limit: usize,
    take: &mut dyn FnMut(&Watcher, Vec<Event>) -> bool,
) -> Result<Recorded, ToolError> {
    let title = watcher.title().to_string();
    let mut recorded = Recorded { events: 0, dropped: 0, title, ended: None };
    loop {
        let (mut new, lost) = match watcher.events(AT_ONCE) {
            Ok(got) => got,
            // Events from before it ended are kept.
            Err(error) if recorded.events == 0 => return Err(error.into()),
            Err(error) => {
                recorded.ended = Some(error.to_string());
                return Ok(recorded);
            }
        };
        recorded.dropped += lost;
        new.truncate(limit - recorded.events);
        recorded.events += new.len();
        let is_ended = take(watcher, new);
        if recorded.events >= limit {
            recorded.ended = Some(format!("{limit} events are as many as it keeps"));
            return Ok(recorded);
        }
        let left = until.saturating_duration_since(Instant::now());
        if is_ended || left.is_zero() {
            return Ok(recorded);
        }
        std::thread::sleep(EVERY.min(left));
    }
}

/// Writes events as lines.
fn write(watcher: &Watcher, events: &[Event], file: File) -> std::io::Result<()> {
    let out = Arc::new(Mutex::new((BufWriter::new(file), Ok(()))));
    let sink = Arc::clone(&out);
    let mut log = Log::new(Box::new(move |line| {
        let (file, result) = &mut *sink.lock().unwrap_or_else(PoisonError::into_inner);
        if result.is_ok() {
            *result = writeln!(file, "{line}");
        }
    }));
    for event in events {
        log.event(event.end, event, &|named| watcher.name(named).map(str::to_string));
    }
    let (file, result) = &mut *out.lock().unwrap_or_else(PoisonError::into_inner);
    std::mem::replace(result, Ok(())).and_then(|()| file.flush())
}
