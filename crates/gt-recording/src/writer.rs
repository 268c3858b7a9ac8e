//! The thread that writes a recording, so that the program waits neither for hashes nor for the disk.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use gt_client::source;
use gt_ir::wire;
use gt_journal::segment;
use rustc_hash::FxHashSet;

use crate::content::ContentHash;
use crate::event::EventBuffer;
use crate::format::{RecordedLine, RecordingEntry, RecordingHeader, SCHEMA};

/// How long events are collected before they are written: a program that is killed loses the last
/// ones.
const COLLECTED: Duration = Duration::from_millis(5);
/// The bytes of events that are written at once, without waiting for others.
const LARGE: usize = 1 << 20;
/// The most bytes that wait to be written; the program waits for the disk then.
const MOST: usize = 256 << 20;
/// How long the end of a session waits for the disk.
const LAST: Duration = Duration::from_secs(60);

/// Writes a recording in a thread.
pub struct RecordingWriter {
    shared: Arc<WriterShared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct WriterShared {
    waiting: Mutex<WaitingEvents>,
    /// Events arrive, or are taken.
    changed: Condvar,
    /// Whether writing has failed.
    has_failed: AtomicBool,
}

/// The events that are not written yet.
#[derive(Default)]
struct WaitingEvents {
    buffer: EventBuffer,
    /// Whether the thread waits for events.
    is_idle: bool,
    is_closed: bool,
}

impl WriterShared {
    fn waiting(&self) -> MutexGuard<'_, WaitingEvents> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, waiting: MutexGuard<'a, WaitingEvents>) -> MutexGuard<'a, WaitingEvents> {
        self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecordingWriter {
    /// Writes the header, and starts the thread.
    ///
    /// # Errors
    /// The file cannot be written, or no thread can be started.
    pub fn start(file: File, path: &str, header: RecordingHeader) -> io::Result<RecordingWriter> {
        let mut file = BufWriter::with_capacity(1 << 18, file);
        segment::write_header(SCHEMA, &mut file)?;
        let is_anonymous = header.is_anonymous;
        segment::write_record(&wire::encode(&RecordingEntry::Header(Box::new(header))), &mut file)?;
        file.flush()?;
        let shared = Arc::new(WriterShared {
            waiting: Mutex::default(),
            changed: Condvar::new(),
            has_failed: AtomicBool::new(false),
        });
        let thread = WriterThread {
            file,
            path: path.to_string(),
            known: FxHashSet::default(),
            lines: 0,
            is_anonymous,
            shared: Arc::clone(&shared),
        };
        let thread = thread::Builder::new().name("gt-record".into()).spawn(move || thread.run())?;
        Ok(RecordingWriter { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Appends an event, which `write` encodes.
    pub fn append(&self, write: impl FnOnce(&mut EventBuffer)) {
        if self.shared.has_failed.load(Ordering::Relaxed) {
            return;
        }
        let mut waiting = self.shared.waiting();
        while waiting.buffer.data_bytes + waiting.buffer.bytes.len() > MOST {
            waiting = self.shared.wait(waiting);
        }
        if waiting.is_closed {
            return;
        }
        write(&mut waiting.buffer);
        if waiting.is_idle {
            waiting.is_idle = false;
            drop(waiting);
            self.shared.changed.notify_all();
        }
    }

    /// Writes what is left and the end of the stream, unless the disk hangs.
    pub fn finish(&self) {
        self.shared.waiting().is_closed = true;
        self.shared.changed.notify_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return };
        let until = Instant::now() + LAST;
        while !thread.is_finished() && Instant::now() < until {
            thread.thread().unpark();
            thread::sleep(Duration::from_micros(200));
        }
    }
}

struct WriterThread {
    file: BufWriter<File>,
    path: String,
    /// The data that is in the file.
    known: FxHashSet<ContentHash>,
    /// The number of lines that are in the file.
    lines: usize,
    is_anonymous: bool,
    shared: Arc<WriterShared>,
}

impl WriterThread {
    fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let mut taken = EventBuffer::default();
        let mut is_over = false;
        while !is_over {
            let mut waiting = shared.waiting();
            while waiting.buffer.is_empty() && !waiting.is_closed {
                waiting.is_idle = true;
                waiting = shared.wait(waiting);
            }
            waiting.is_idle = false;
            if !waiting.is_closed && waiting.buffer.bytes.len() < LARGE {
                drop(waiting);
                thread::park_timeout(COLLECTED);
                waiting = shared.waiting();
            }
            std::mem::swap(&mut waiting.buffer, &mut taken);
            is_over = waiting.is_closed;
            drop(waiting);
            shared.changed.notify_all();
            if let Err(error) = self.write(&taken, is_over) {
                tracing::warn!(
                    "recording into '{}' has ended: {error}\n  hint: the stream up to there can be replayed",
                    self.path
                );
                shared.has_failed.store(true, Ordering::Relaxed);
                shared.waiting().buffer.clear();
                shared.changed.notify_all();
                return;
            }
            taken.clear();
        }
    }

    fn write(&mut self, taken: &EventBuffer, is_over: bool) -> io::Result<()> {
        if !taken.is_empty() {
            self.write_lines()?;
            let data = taken.data.iter().map(|bytes| self.write_data(bytes));
            let data = data.collect::<io::Result<Vec<ContentHash>>>()?;
            let events = Bytes::copy_from_slice(&taken.bytes);
            self.write_entry(&RecordingEntry::Events { data, events })?;
        }
        if is_over {
            self.write_entry(&RecordingEntry::End)?;
        }
        self.file.flush()
    }

    /// Writes the lines of the program that were seen since the last call.
    fn write_lines(&mut self) -> io::Result<()> {
        let lines = source::lines_from(self.lines);
        if lines.is_empty() || self.is_anonymous {
            return Ok(());
        }
        self.lines += lines.len();
        let line = |(text, called): (String, Option<source::UserCall>)| RecordedLine {
            text,
            called: called.map(|call| call.name).unwrap_or_default(),
        };
        self.write_entry(&RecordingEntry::Lines(lines.into_iter().map(line).collect()))
    }

    /// Writes data, unless it is in the file; returns its hash.
    fn write_data(&mut self, bytes: &Bytes) -> io::Result<ContentHash> {
        let hash = ContentHash::of(bytes);
        if self.known.insert(hash) {
            self.write_entry(&RecordingEntry::Data { hash, bytes: bytes.clone() })?;
        }
        Ok(hash)
    }

    fn write_entry(&mut self, entry: &RecordingEntry) -> io::Result<()> {
        segment::write_record(&wire::encode(entry), &mut self.file).map(drop)
    }
}
