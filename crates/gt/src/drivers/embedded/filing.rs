//! Files that the workers of an embedded session read and write, each in a thread of its own for as
//! long as that takes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread::{self, JoinHandle};

use gt_worker::FileJob;

use super::lock;
use super::runtime::Runtime;
use crate::drivers::files::{self, FileDone, FileKey, Folders};
use crate::drivers::memory;

/// The jobs that are under way, each with the index of its worker.
#[derive(Default)]
pub struct Filing {
    runtime: OnceLock<Weak<Runtime>>,
    open: Mutex<Vec<(usize, FileKey)>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    is_closed: AtomicBool,
    /// Made with the first job.
    folders: Mutex<Option<Arc<Folders>>>,
}

impl Filing {
    pub fn attach(&self, runtime: &Arc<Runtime>) {
        let _ = self.runtime.set(Arc::downgrade(runtime));
    }

    /// Begins a job of a worker. Returns what ends it if that is so at once.
    pub fn begin(&self, worker: usize, job: FileJob) -> Option<FileDone> {
        let key = FileKey::of(&job);
        let is_saved = matches!(key, FileKey::Write(_));
        // Held until the job's thread is among them: the end joins all that began before it.
        let mut threads = lock(&self.threads);
        if self.is_closed.load(Ordering::SeqCst) && !is_saved {
            return files::given_up("", &key, "the session is closed");
        }
        let mut folders = lock(&self.folders);
        let folders = Arc::clone(folders.get_or_insert_with(|| Arc::new(memory::folders())));
        let runtime = self.runtime.get().cloned().unwrap_or_default();
        lock(&self.open).push((worker, key));
        let run = move || {
            let message = files::run(&folders, "", job);
            if let Some(runtime) = runtime.upgrade() {
                runtime.filed(worker, key, message);
            }
        };
        match thread::Builder::new().name("gt-files".into()).spawn(run) {
            Ok(thread) => {
                threads.retain(|thread| !thread.is_finished());
                threads.push(thread);
                None
            }
            Err(error) => {
                self.close(worker, key);
                let reason = format!("no thread could be started: {error}");
                files::given_up("", &key, &reason)
            }
        }
    }

    /// A job is done.
    pub fn close(&self, worker: usize, key: FileKey) {
        let mut open = lock(&self.open);
        if let Some(at) = open.iter().position(|job| *job == (worker, key)) {
            open.swap_remove(at);
        }
    }

    /// Ends: waits until all that was begun is on the disk, and removes what was written only
    /// because there was no room for it. Saves may begin later; then this is called again.
    pub fn finish(&self) {
        loop {
            let mut threads = lock(&self.threads);
            if threads.is_empty() {
                self.is_closed.store(true, Ordering::SeqCst);
                break;
            }
            let begun = std::mem::take(&mut *threads);
            drop(threads);
            for thread in begun {
                // One that panicked has nothing more to do.
                let _ = thread.join();
            }
        }
        drop(lock(&self.folders).take());
    }

    /// In the child of a fork: ends the jobs, whose threads are the parent's.
    pub fn after_fork(&self) -> Vec<(usize, FileDone)> {
        lock(&self.threads).drain(..).for_each(std::mem::forget);
        let mut folders = lock(&self.folders);
        *folders = folders.take().map(|older| Arc::new(memory::folders_of_fork(&older)));
        drop(folders);
        let ended = |(worker, key): (usize, FileKey)| {
            let reason = "the process has forked meanwhile; its parent goes on with it";
            Some((worker, files::given_up("", &key, reason)?))
        };
        lock(&self.open).drain(..).filter_map(ended).collect()
    }
}
