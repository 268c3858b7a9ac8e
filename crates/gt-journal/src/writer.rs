//! A thread that writes a journal, so that its owner does not wait for the disk.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::folder::{Folder, SYNC};
use crate::segment;

/// The least time between two groups, which bounds the number of syncs.
const PAUSE: Duration = Duration::from_millis(10);
/// The most records of a group.
const GROUP: usize = 64 << 10;
/// How long dropping the writer waits for the disk.
const LAST: Duration = Duration::from_secs(10);

/// Writes records of type `R`.
pub struct JournalWriter<R> {
    orders: Option<Sender<(u64, JournalOrder<R>)>>,
    shared: Arc<JournalProgress>,
    thread: Option<JoinHandle<()>>,
    /// The number of records and replacements given so far.
    given: u64,
}

enum JournalOrder<R> {
    Append(R),
    /// Replace the journal by these records, which count as one.
    Replace(Vec<R>),
}

#[derive(Default)]
struct JournalProgress {
    /// The number of records that are durable.
    durable: AtomicU64,
    /// The number of orders that were processed, successfully or not.
    handled: AtomicU64,
    /// The number of records that were encoded.
    encoded: AtomicU64,
    /// The bytes of the segment, now and when it was started.
    bytes: AtomicU64,
    begun: AtomicU64,
    state: Mutex<WriteState>,
    changed: Condvar,
}

#[derive(Default)]
struct WriteState {
    /// Why writing has stopped, if it has.
    error: Option<String>,
}

impl JournalProgress {
    fn state(&self) -> MutexGuard<'_, WriteState> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl<R: Send + 'static> JournalWriter<R> {
    /// Starts the thread, which encodes records with `encode` and calls `notify` when more records are
    /// durable or writing has failed. The journal is empty until it is [replaced](Writer::replace).
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(
        folder: Folder,
        encode: fn(&R) -> Vec<Bytes>,
        notify: impl Fn() + Send + 'static,
    ) -> std::io::Result<JournalWriter<R>> {
        let (orders, receiver) = mpsc::channel();
        let shared = Arc::new(JournalProgress::default());
        let work = JournalThread { folder, encode, file: None, shared: Arc::clone(&shared) };
        let thread = thread::Builder::new()
            .name("gt-journal".into())
            .spawn(move || work.run(&receiver, &notify))?;
        Ok(JournalWriter { orders: Some(orders), shared, thread: Some(thread), given: 0 })
    }

    fn order(&mut self, order: JournalOrder<R>) -> u64 {
        self.given += 1;
        if let Some(orders) = &self.orders {
            // If the thread has ended, `error` says so.
            let _ = orders.send((self.given, order));
        }
        self.given
    }

    /// Appends a record; returns its position.
    pub fn append(&mut self, record: R) -> u64 {
        self.order(JournalOrder::Append(record))
    }

    /// Abandons the journal, for this reason, because the disk takes too long: records given so far may
    /// never become durable. The journal is removed once the disk works, until it is [replaced](Writer::replace).
    pub fn abandon(&mut self, reason: &str) {
        self.shared.state().error.get_or_insert_with(|| reason.to_string());
    }

    /// Whether the thread has nothing to do.
    pub fn is_idle(&self) -> bool {
        self.shared.handled.load(Ordering::Acquire) == self.given
    }

    /// A number that changes while the thread makes progress.
    pub fn progress(&self) -> u64 {
        self.shared.encoded.load(Ordering::Relaxed).wrapping_add(self.durable())
    }

    /// Replaces the journal by these records, which count as one.
    pub fn replace(&mut self, records: Vec<R>) -> u64 {
        self.shared.state().error = None;
        self.order(JournalOrder::Replace(records))
    }

    /// The position up to which all records are durable.
    pub fn durable(&self) -> u64 {
        self.shared.durable.load(Ordering::Acquire)
    }

    /// The position of the last record that was given.
    pub fn given(&self) -> u64 {
        self.given
    }

    /// The bytes of the journal, now and when its segment was started.
    pub fn bytes(&self) -> (u64, u64) {
        let (bytes, begun) = (&self.shared.bytes, &self.shared.begun);
        (bytes.load(Ordering::Relaxed), begun.load(Ordering::Relaxed))
    }

    /// Why writing has stopped, if it has.
    pub fn error(&self) -> Option<String> {
        if self.thread.as_ref().is_some_and(JoinHandle::is_finished) {
            return Some("the thread that writes it has ended".into());
        }
        self.shared.state().error.clone()
    }

    /// Waits at most `limit` until all records up to a position are durable. Returns whether they are.
    pub fn wait(&self, position: u64, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        let mut state = self.shared.state();
        while self.durable() < position {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || state.error.is_some() {
                return false;
            }
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
        true
    }
}

impl<R> Drop for JournalWriter<R> {
    /// Writes all records given so far, unless the disk hangs.
    fn drop(&mut self) {
        self.orders = None;
        let Some(thread) = self.thread.take() else { return };
        let until = Instant::now() + LAST;
        while !thread.is_finished() && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The thread's state.
struct JournalThread<R> {
    folder: Folder,
    encode: fn(&R) -> Vec<Bytes>,
    /// None before the first segment, and after an error.
    file: Option<BufWriter<File>>,
    shared: Arc<JournalProgress>,
}

impl<R> JournalThread<R> {
    fn run(mut self, orders: &Receiver<(u64, JournalOrder<R>)>, notify: &impl Fn()) {
        while let Ok(first) = orders.recv() {
            let mut group = vec![first];
            group.extend(orders.try_iter().take(GROUP));
            let last = group.last().map_or(0, |(position, _)| *position);
            let written = self.write(group);
            let mut state = self.shared.state();
            if let Err(error) = written {
                state.error = Some(error.to_string());
            }
            if state.error.is_none() && self.file.is_some() {
                self.shared.durable.store(last, Ordering::Release);
            } else if state.error.is_some() {
                // Records from now on are not in it.
                self.file = None;
                self.folder.clear();
            }
            self.shared.handled.store(last, Ordering::Release);
            drop(state);
            self.shared.changed.notify_all();
            notify();
            thread::sleep(PAUSE);
        }
    }

    /// Writes a group and syncs it.
    fn write(&mut self, group: Vec<(u64, JournalOrder<R>)>) -> std::io::Result<()> {
        let (shared, encode) = (&self.shared, self.encode);
        let encode = |record: &R| {
            shared.encoded.fetch_add(1, Ordering::Relaxed);
            encode(record)
        };
        let mut unsynced = 0;
        for (_, order) in group {
            match order {
                JournalOrder::Append(record) => {
                    let Some(file) = &mut self.file else { continue };
                    let bytes = segment::write_record(&encode(&record), file)?;
                    self.shared.bytes.fetch_add(bytes, Ordering::Relaxed);
                    unsynced += bytes;
                    if unsynced > SYNC {
                        // Progress distinguishes a slow disk from one that hangs.
                        file.flush()?;
                        file.get_ref().sync_data()?;
                        self.shared.encoded.fetch_add(1, Ordering::Relaxed);
                        unsynced = 0;
                    }
                }
                JournalOrder::Replace(records) => {
                    let frames = records.iter().map(encode);
                    let (file, bytes) = self.folder.replace(frames)?;
                    self.shared.bytes.store(bytes, Ordering::Relaxed);
                    self.shared.begun.store(bytes, Ordering::Relaxed);
                    self.file = Some(BufWriter::with_capacity(1 << 20, file));
                }
            }
        }
        if let Some(file) = &mut self.file {
            file.flush()?;
            file.get_ref().sync_data()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    fn writer(path: &std::path::Path) -> (JournalWriter<u64>, Vec<u64>) {
        let (folder, contents) = Folder::open(path, 1).unwrap();
        let number = |frames: &Vec<Bytes>| u64::from_le_bytes(frames[0][..].try_into().unwrap());
        let encode = |number: &u64| vec![Bytes::from(number.to_le_bytes().to_vec())];
        let writer = JournalWriter::start(folder, encode, || ()).unwrap();
        (writer, contents.records.iter().map(number).collect())
    }

    #[test]
    fn what_is_durable_is_read_again() {
        let place = tempfile::tempdir().unwrap();
        let (mut first, before) = writer(place.path());
        assert!(before.is_empty());
        first.replace(vec![1, 2]);
        for number in 3..100 {
            first.append(number);
        }
        let last = first.append(100);
        assert!(first.wait(last, LIMIT) && first.durable() == last);
        first.replace(vec![7]);
        first.append(8);
        drop(first);
        let (second, before) = writer(place.path());
        assert_eq!(before, [7, 8]);
        assert_eq!(second.durable(), 0);
    }

    #[test]
    fn a_folder_that_is_gone_is_an_error_until_the_journal_begins_again() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("state");
        let (mut writer, _) = writer(&path);
        std::fs::remove_dir_all(&path).unwrap();
        let position = writer.replace(vec![1]);
        assert!(!writer.wait(position, LIMIT) && writer.error().is_some());
        std::fs::create_dir(&path).unwrap();
        writer.append(2);
        let position = writer.replace(vec![1, 2]);
        assert!(writer.wait(position, LIMIT) && writer.error().is_none());
        assert!(writer.is_idle() && writer.progress() > position);
    }

    #[test]
    fn what_is_abandoned_is_removed_until_the_journal_begins_again() {
        let place = tempfile::tempdir().unwrap();
        let (mut first, _) = writer(place.path());
        let begin = first.replace(vec![1]);
        assert!(first.wait(begin, LIMIT));
        first.abandon("the disk hangs");
        let last = first.append(2);
        let until = Instant::now() + LIMIT;
        while !first.is_idle() {
            assert!(Instant::now() < until);
            thread::sleep(Duration::from_millis(1));
        }
        assert!(first.durable() < last && first.error().is_some());
        drop(first);
        let (mut second, before) = writer(place.path());
        assert!(before.is_empty());
        second.abandon("the disk hangs");
        let begin = second.replace(vec![3]);
        assert!(second.wait(begin, LIMIT));
        drop(second);
        assert_eq!(writer(place.path()).1, [3]);
    }
}
