//! Work on files beside a worker's turns: what its core asks for is read and written here.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use gt_ir::message::{Failure, Message};
use gt_ir::stored::SavePart;
use gt_ir::{Content, LaneId, RequestId, SourceId, TensorId};
use gt_store::place::{Places, Root};
use gt_store::{StoreError, values};
use gt_worker::FileJob;

/// Does a job, and gives the message that ends it: for the dispatcher what was written, for the
/// worker's core what was read. Blocks while the disk works.
pub fn run(places: &Places, worker: &str, job: FileJob) -> Message {
    match job {
        FileJob::Write { part, values } => {
            let SavePart { request, line, .. } = *part;
            let result = values::write(places, &part, &values);
            let result = result.map_err(|error| failure("save", worker, line, &error));
            Message::Saved { request, result }
        }
        FileJob::Read { lane, tensor, values } => {
            let result = values::read(places, &values).map(Content::Data);
            let line = SourceId::default();
            let result = result.map_err(|error| failure("load", worker, line, &error));
            Message::Loaded { lane, tensor, result }
        }
    }
}

/// The message that ends a job which nobody does any more.
pub fn given_up(worker: &str, job: &FileKey, reason: &str) -> Message {
    let failure = |operation: &str| {
        let (operation, reason, worker) = (operation.into(), reason.into(), worker.into());
        Failure { operation, reason, worker, line: SourceId::default() }
    };
    match *job {
        FileKey::Write(request) => Message::Saved { request, result: Err(failure("save")) },
        FileKey::Read(lane, tensor) => {
            Message::Loaded { lane, tensor, result: Err(failure("load")) }
        }
    }
}

/// What a job is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FileKey {
    Write(RequestId),
    Read(LaneId, TensorId),
}

impl FileKey {
    pub fn of(job: &FileJob) -> FileKey {
        match job {
            FileJob::Write { part, .. } => FileKey::Write(part.request),
            FileJob::Read { lane, tensor, .. } => FileKey::Read(*lane, *tensor),
        }
    }
}

fn failure(operation: &str, worker: &str, line: SourceId, error: &StoreError) -> Failure {
    let (operation, reason, worker) = (operation.into(), error.to_string(), worker.into());
    Failure { operation, reason, worker, line }
}

/// The folders that an operator allows.
///
/// # Errors
/// One of them cannot be opened.
pub fn below(roots: &[PathBuf]) -> Result<Places, StoreError> {
    roots.iter().map(|path| Root::open(path)).collect::<Result<_, _>>().map(Places::Below)
}

/// A thread that does a worker's jobs one after the other.
pub struct FileThread {
    jobs: Sender<FileJob>,
    done: Receiver<Message>,
    open: usize,
}

impl FileThread {
    /// Starts the thread of a worker.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub fn start(places: Places, worker: String) -> std::io::Result<FileThread> {
        let (jobs, given) = channel::<FileJob>();
        let (finished, done) = channel();
        thread::Builder::new().name("gt-files".into()).spawn(move || {
            // Ends when the worker drops its side.
            for job in given {
                if finished.send(run(&places, &worker, job)).is_err() {
                    return;
                }
            }
        })?;
        Ok(FileThread { jobs, done, open: 0 })
    }

    pub fn begin(&mut self, job: FileJob) {
        // The thread lives as long as this does.
        if self.jobs.send(job).is_ok() {
            self.open += 1;
        }
    }

    /// Whether a job is not done yet.
    pub fn is_busy(&self) -> bool {
        self.open > 0
    }

    /// The messages that end jobs, of those that are done.
    pub fn take_done(&mut self) -> Vec<Message> {
        let done: Vec<Message> = self.done.try_iter().collect();
        self.open -= done.len();
        done
    }
}
