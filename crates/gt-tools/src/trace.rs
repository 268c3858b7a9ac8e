//! `gt trace`: writes a dispatcher's events into a log, in the format of `GT_INSTRUCTION_LOG`.

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

/// How often the dispatcher is polled, and for how many events.
const EVERY: Duration = Duration::from_millis(50);
const AT_ONCE: u32 = 1 << 16;
/// The most events that are recorded.
const MOST: usize = 4 << 20;

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
    let too_long = || ToolError::BadOption(format!("{duration:?} is too long to record"));
    let until = Instant::now().checked_add(duration).ok_or_else(too_long)?;
    let mut watcher = target.watch()?;
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(ToolError::file("making", folder))?;
    }
    // Opened first, so that a path that cannot be written fails at once.
    let file = File::create(path).map_err(ToolError::file("writing", path))?;
    let limit = limit.unwrap_or(MOST).min(MOST);
    let (mut events, mut dropped): (Vec<Event>, u64) = (Vec::new(), 0);
    let mut ended = None;
    loop {
        let (new, lost) = match watcher.events(AT_ONCE) {
            Ok(got) => got,
            // Events from before it ended are kept.
            Err(error) if events.is_empty() => return Err(error.into()),
            Err(error) => {
                ended = Some(error.to_string());
                break;
            }
        };
        dropped += lost;
        events.extend(new);
        let left = until.saturating_duration_since(Instant::now());
        if events.len() >= limit || left.is_zero() || stop() {
            break;
        }
        std::thread::sleep(EVERY.min(left));
    }
    if limit == MOST && events.len() >= MOST {
        ended = Some(format!("{MOST} events are as many as it keeps"));
    }
    events.truncate(limit);
    events.sort_by_key(|event| event.end);
    write(&watcher, &events, file).map_err(ToolError::file("writing", path))?;
    Ok(Recorded { events: events.len(), dropped, title: watcher.title().to_string(), ended })
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
