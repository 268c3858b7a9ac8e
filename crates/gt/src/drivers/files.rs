//! File operations beside a worker's turns: a thread reads and writes what the worker's core
//! requests.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use gt_ir::message::{Failure, WorkerToServer};
use gt_ir::snapshot::Owner;
use gt_ir::stored::{OnDisk, SavePart};
use gt_ir::{Content, LaneId, Meta, RequestId, SourceId, TensorData, TensorId};
use gt_store::place::{DataRoot, DataRoots};
use gt_store::spill::SpillFolder;
use gt_store::{StoreError, values};
use gt_worker::{FileJob, FileResult, ToSave};

/// Why tensors cannot be spilled.
const NO_SPILL_FOLDER: &str = "there is no folder for it";

/// Where a worker reads and writes files.
pub struct Folders {
    pub places: DataRoots,
    /// The folder for spilled tensors, if spilling is enabled.
    pub spill: Option<SpillFolder>,
}

impl Folders {
    /// Values to be saved.
    fn value(&self, value: ToSave) -> Result<TensorData, StoreError> {
        match (value, &self.spill) {
            (ToSave::Data(data), _) => Ok(data),
            (ToSave::Spilled { number, meta, checksum }, Some(folder)) => {
                folder.read(number, meta, checksum)
            }
            (ToSave::Spilled { .. }, None) => Err(StoreError::Forbidden {
                path: PathBuf::new(),
                reason: NO_SPILL_FOLDER.to_string(),
            }),
        }
    }
}

/// What completes a job.
pub enum FileDone {
    /// For the worker's core.
    Worker(FileResult),
    /// For the server.
    Server(WorkerToServer),
}

impl From<FileResult> for FileDone {
    fn from(result: FileResult) -> FileDone {
        FileDone::Worker(result)
    }
}

impl From<WorkerToServer> for FileDone {
    fn from(message: WorkerToServer) -> FileDone {
        FileDone::Server(message)
    }
}

/// Runs a job, and returns what completes it, if anything. Blocks while the disk works.
pub fn run(folders: &Folders, worker: &str, job: FileJob) -> Option<FileDone> {
    let places = &folders.places;
    Some(match job {
        FileJob::Spill { lane, tensor, number, data } => {
            let bytes = data.bytes.len();
            let result = match &folders.spill {
                Some(folder) => {
                    let meta = Meta::new(data.dtype, data.shape);
                    let written = folder.write(number, data).map_err(|error| error.to_string());
                    let mapped = || folder.map(number, meta).ok().map(Content::Data);
                    written.map(|checksum| OnDisk { checksum, mapped: mapped() })
                }
                None => Err(NO_SPILL_FOLDER.to_string()),
            };
            if let Err(reason) = &result {
                tracing::warn!(
                    "{bytes} bytes for which there is no room in memory could not be written to disk: {reason}"
                );
            }
            let failure = |reason| Failure::new("spill", reason, worker, SourceId::default());
            FileResult::Spilled { lane, tensor, number, result: result.map_err(failure) }.into()
        }
        FileJob::Restore { lane, tensor, number, meta, checksum } => {
            let data = match &folders.spill {
                Some(folder) => {
                    folder.read(number, meta, checksum).map_err(|error| error.to_string())
                }
                None => Err(NO_SPILL_FOLDER.to_string()),
            };
            let failure = |reason| Failure::new("restore", reason, worker, SourceId::default());
            let result = data.map(Content::Data).map_err(failure);
            FileResult::Loaded { lane, tensor, result }.into()
        }
        FileJob::Discard { number } => {
            folders.spill.iter().for_each(|folder| folder.remove(number));
            return None;
        }
        FileJob::SpillSnapshot { owner, tensor, data } => {
            let result = match &folders.spill {
                Some(folder) => folder.write_unnamed(&data).map_err(|error| error.to_string()),
                None => Err(NO_SPILL_FOLDER.to_string()),
            };
            let failure = |reason| Failure::new("spill", reason, worker, SourceId::default());
            let result = result.map(Content::Data).map_err(failure);
            FileResult::SnapshotSpilled { owner, tensor, result }.into()
        }
        FileJob::Write { part, values } => {
            let SavePart { request, line, .. } = *part;
            let values: Result<Vec<TensorData>, StoreError> =
                values.into_iter().map(|value| folders.value(value)).collect();
            let result = values.and_then(|values| values::write(places, &part, &values));
            let result = result.map_err(|error| failure("save", worker, line, &error));
            WorkerToServer::Saved { request, result }.into()
        }
        FileJob::Read { lane, tensor, values } => {
            let result = values::read(places, &values).map(Content::Data);
            let line = SourceId::default();
            let result = result.map_err(|error| failure("load", worker, line, &error));
            FileResult::Loaded { lane, tensor, result }.into()
        }
    })
}

/// Returns what completes an abandoned job, if anything.
pub fn given_up(worker: &str, job: &FileKey, reason: &str) -> Option<FileDone> {
    let failure = |operation: &str| Failure::new(operation, reason, worker, SourceId::default());
    Some(match *job {
        FileKey::Spill(lane, tensor, number) => {
            FileResult::Spilled { lane, tensor, number, result: Err(failure("spill")) }.into()
        }
        FileKey::Discard(_) => return None,
        FileKey::SpillSnapshot(owner, tensor) => {
            FileResult::SnapshotSpilled { owner, tensor, result: Err(failure("spill")) }.into()
        }
        FileKey::Write(request) => {
            WorkerToServer::Saved { request, result: Err(failure("save")) }.into()
        }
        FileKey::Read(lane, tensor) => {
            FileResult::Loaded { lane, tensor, result: Err(failure("load")) }.into()
        }
    })
}

/// The receiver of a job's result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FileKey {
    Write(RequestId),
    Read(LaneId, TensorId),
    Spill(LaneId, TensorId, u64),
    Discard(u64),
    SpillSnapshot(Owner, TensorId),
}

impl FileKey {
    pub fn of(job: &FileJob) -> FileKey {
        match job {
            FileJob::Write { part, .. } => FileKey::Write(part.request),
            FileJob::Read { lane, tensor, .. } | FileJob::Restore { lane, tensor, .. } => {
                FileKey::Read(*lane, *tensor)
            }
            FileJob::Spill { lane, tensor, number, .. } => FileKey::Spill(*lane, *tensor, *number),
            FileJob::Discard { number } => FileKey::Discard(*number),
            FileJob::SpillSnapshot { owner, tensor, .. } => FileKey::SpillSnapshot(*owner, *tensor),
        }
    }
}

fn failure(operation: &str, worker: &str, line: SourceId, error: &StoreError) -> Failure {
    Failure::new(operation, error.to_string(), worker, line)
}

/// The folders that an operator allows.
///
/// # Errors
/// One of them cannot be opened.
pub fn below(roots: &[PathBuf]) -> Result<DataRoots, StoreError> {
    roots.iter().map(|path| DataRoot::open(path)).collect::<Result<_, _>>().map(DataRoots::Below)
}

/// A thread that runs a worker's jobs in order.
pub struct FileThread {
    jobs: Sender<FileJob>,
    done: Receiver<Option<FileDone>>,
    open: usize,
}

impl FileThread {
    /// Starts the thread of a worker.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start(folders: Folders, worker: String) -> std::io::Result<FileThread> {
        let (jobs, given) = channel::<FileJob>();
        let (finished, done) = channel();
        thread::Builder::new().name("gt-files".into()).spawn(move || {
            // Ends when the worker drops its side.
            for job in given {
                // Each job is answered, so the number of open jobs is known.
                if finished.send(run(&folders, &worker, job)).is_err() {
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

    /// Returns whether a job is not complete yet.
    pub fn is_busy(&self) -> bool {
        self.open > 0
    }

    /// Returns what completes the jobs that are done.
    pub fn take_done(&mut self) -> Vec<FileDone> {
        let done: Vec<Option<FileDone>> = self.done.try_iter().collect();
        self.open -= done.len();
        done.into_iter().flatten().collect()
    }
}
