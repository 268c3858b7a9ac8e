//! Spilled tensors, in files of a folder that is removed with its worker.
//!
//! Each file has one tensor, in the format of [`values`]; its checksum is verified when it is read.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use gt_ir::sharding::Block;
use gt_ir::stored::{SavePart, SavedBlock, StoredPart, StoredValues, Written};
use gt_ir::{Meta, RequestId, SourceId, TensorData, TensorId};

use crate::place::{DataRoot, DataRoots};
use crate::{Result, StoreError, mapped, values};

/// The prefix of the folders' names, before the process id.
const PREFIX: &str = "gt-spill-";
const LOCK: &str = "lock";

/// A folder for a worker's files, removed when the process that created it drops it.
pub struct SpillFolder {
    path: PathBuf,
    places: DataRoots,
    process: u32,
    /// The folders of the processes that this one was forked from: it reads them, and does not
    /// remove them.
    older: Vec<PathBuf>,
    /// Locked while the process runs, so that other processes recognize an abandoned folder.
    _lock: File,
}

impl SpillFolder {
    /// Creates a folder of this process in `parent`, and removes abandoned ones there.
    ///
    /// # Errors
    /// `parent` cannot be written.
    pub fn create(parent: &Path) -> Result<SpillFolder> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let failed = |error| StoreError::io(parent, error);
        std::fs::create_dir_all(parent).map_err(failed)?;
        remove_left_behind(parent);
        let process = std::process::id();
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // Other machines may share the folder, and have processes with the same id.
        let path = parent.join(format!("{PREFIX}{process}-{time:x}-{number}"));
        std::fs::create_dir(&path).map_err(failed)?;
        let path = std::path::absolute(&path).map_err(failed)?;
        let lock = File::create(path.join(LOCK)).map_err(failed)?;
        lock.try_lock().map_err(|error| failed(error.into()))?;
        let places = DataRoots::Below(vec![DataRoot::open(&path)?]);
        Ok(SpillFolder { path, places, process, older: Vec::new(), _lock: lock })
    }

    /// Returns the folder of a fork: a new one, which also reads the parent's.
    ///
    /// # Errors
    /// The folder around it cannot be written.
    pub fn of_fork(&self) -> Result<SpillFolder> {
        let parent = self.path.parent().unwrap_or(Path::new("."));
        let older = self.older.iter().chain([&self.path]).cloned().collect();
        let mut own = SpillFolder::create(parent)?;
        own.older = older;
        Ok(own)
    }

    /// Writes a tensor into a numbered file; returns its checksum.
    ///
    /// # Errors
    /// The disk is full, or another error of the system.
    pub fn write(&self, number: u64, data: TensorData) -> Result<u32> {
        let block = Block::whole(data.shape);
        let part = SavePart {
            request: RequestId(0),
            folder: self.path.display().to_string(),
            file: name(number),
            blocks: vec![SavedBlock { tensor: TensorId(0), index: 0, block }],
            line: SourceId::default(),
        };
        let written = values::write(&self.places, &part, &[data])?;
        Ok(written.first().map_or(0, |Written { checksum, .. }| *checksum))
    }

    /// Reads a tensor from a numbered file.
    ///
    /// # Errors
    /// The file is missing, truncated, or does not match its checksum.
    pub fn read(&self, number: u64, meta: Meta, checksum: u32) -> Result<TensorData> {
        let own = self.path.join(name(number));
        let older = self.older.iter().map(|folder| folder.join(name(number)));
        let path = older.rev().find(|_| !own.exists()).unwrap_or(own);
        let length = std::fs::metadata(&path).map_err(|error| StoreError::io(&path, error))?.len();
        // The values follow the header.
        let offset = length.checked_sub(meta.bytes() as u64);
        let wrong = |reason: &str| StoreError::Format { path: path.clone(), reason: reason.into() };
        let offset = offset.ok_or_else(|| wrong("it is cut off"))?;
        let block = Block::whole(meta.shape);
        let parts = vec![StoredPart { file: path.display().to_string(), offset, block }];
        let data = values::read(&DataRoots::Anywhere, &StoredValues { meta, need: block, parts })?;
        match crc32fast::hash(&data.bytes) == checksum {
            true => Ok(data),
            false => Err(wrong("its bytes are not those that were written")),
        }
    }

    /// Maps the values of a numbered file, which stay valid when the file is removed.
    ///
    /// # Errors
    /// The file is missing, or cannot be mapped.
    pub fn map(&self, number: u64, meta: Meta) -> Result<TensorData> {
        let path = self.path.join(name(number));
        let failed = |error| StoreError::io(&path, error);
        let file = File::open(&path).map_err(failed)?;
        let all = mapped::map(&file).map_err(failed)?;
        let wrong = || StoreError::Format { path: path.clone(), reason: "it is cut off".into() };
        let begin = all.len().checked_sub(meta.bytes()).ok_or_else(wrong)?;
        TensorData::new(meta.dtype, meta.shape, all.slice(begin..)).ok_or_else(wrong)
    }

    /// Writes a value into a file without a name and returns it, mapped; the file is deleted when
    /// it is dropped.
    ///
    /// # Errors
    /// The disk is full, or another error of the system.
    pub fn write_unnamed(&self, data: &TensorData) -> Result<TensorData> {
        let kept = mapped::keep(&self.path, std::iter::once(&data.bytes));
        let bytes = kept.map_err(|error| StoreError::io(&self.path, error))?;
        Ok(TensorData { bytes, ..*data })
    }

    /// Removes a numbered file; if that fails, it is removed with the folder.
    pub fn remove(&self, number: u64) {
        let _ = std::fs::remove_file(self.path.join(name(number)));
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SpillFolder {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            // The next process that creates a folder there retries.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

fn name(number: u64) -> String {
    format!("{number}.safetensors")
}

/// Removes the folders of processes that have ended: their locks are free.
fn remove_left_behind(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        let lock = || File::options().write(true).open(entry.path().join(LOCK));
        if is_ours && lock().is_ok_and(|lock| lock.try_lock().is_ok()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use gt_ir::{DType, Shape};

    use super::*;

    fn data() -> TensorData {
        let bytes: Vec<u8> = (0..64).collect();
        TensorData::new(DType::F32, Shape::new(&[4, 4]).unwrap(), Bytes::from(bytes)).unwrap()
    }

    #[test]
    fn what_was_written_comes_back_or_is_told_to_be_damaged() {
        let parent = std::env::temp_dir().join(format!("gt-spill-test-{}", std::process::id()));
        let left = parent.join("gt-spill-1-left");
        std::fs::create_dir_all(&left).unwrap();
        std::fs::write(left.join(LOCK), "").unwrap();
        let folder = SpillFolder::create(&parent).unwrap();
        assert!(!left.exists(), "its process is gone");
        let other = SpillFolder::create(&parent).unwrap();
        assert!(folder.path().exists(), "its process lives");
        drop(other);
        let meta = Meta::new(DType::F32, Shape::new(&[4, 4]).unwrap());
        let checksum = folder.write(7, data()).unwrap();
        assert_eq!(folder.read(7, meta, checksum).unwrap(), data());
        let path = folder.path().join("7.safetensors");
        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let error = folder.read(7, meta, checksum).unwrap_err().to_string();
        assert!(error.contains("not those that were written"), "{error}");
        std::fs::write(&path, &bytes[..10]).unwrap();
        assert!(folder.read(7, meta, checksum).is_err());
        folder.remove(7);
        assert!(folder.read(7, meta, checksum).is_err());
        let checksum = folder.write(8, data()).unwrap();
        let fork = folder.of_fork().unwrap();
        assert_eq!(fork.read(8, meta, checksum).unwrap(), data());
        drop(fork);
        assert_eq!(folder.read(8, meta, checksum).unwrap(), data(), "a fork leaves it there");
        assert_eq!(folder.write_unnamed(&data()).unwrap(), data());
        let mapped = folder.map(8, meta).unwrap();
        folder.remove(8);
        assert_eq!(mapped, data(), "what is mapped stays");
        assert!(folder.map(8, meta).is_err());
        let path = folder.path().to_path_buf();
        drop(folder);
        assert!(!path.exists());
        std::fs::remove_dir_all(parent).unwrap();
    }
}
