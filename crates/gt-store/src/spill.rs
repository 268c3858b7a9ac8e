//! Tensors that a worker has no room for, in files of a folder that goes with it.
//!
//! A file is one as [`values`] writes it, of one tensor; its checksum is compared when it is read.

use std::path::{Path, PathBuf};

use gt_ir::sharding::Block;
use gt_ir::stored::{SavePart, SavedBlock, StoredPart, StoredValues, Written};
use gt_ir::{Meta, RequestId, SourceId, TensorData, TensorId};

use crate::place::{Places, Root};
use crate::{Result, StoreError, values};

/// The name that the folders of all processes begin with, before the number of their process.
const PREFIX: &str = "gt-spill-";

/// A folder for a worker's files, removed when it is dropped.
pub struct SpillFolder {
    path: PathBuf,
    places: Places,
}

impl SpillFolder {
    /// Makes a folder of this process in `parent`, and removes those of processes that are gone.
    ///
    /// # Errors
    /// `parent` cannot be written.
    pub fn create(parent: &Path) -> Result<SpillFolder> {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let failed = |error| StoreError::io(parent, error);
        std::fs::create_dir_all(parent).map_err(failed)?;
        remove_stale(parent);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
        // One of a process of the same number that was killed.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).map_err(failed)?;
        let path = std::path::absolute(&path).map_err(failed)?;
        let places = Places::Below(vec![Root::open(&path)?]);
        Ok(SpillFolder { path, places })
    }

    /// Writes a tensor into the file of a number; returns its checksum.
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

    /// Reads a tensor back from the file of a number.
    ///
    /// # Errors
    /// The file is missing, cut off, or has other bytes than were written.
    pub fn read(&self, number: u64, meta: Meta, checksum: u32) -> Result<TensorData> {
        let path = self.path.join(name(number));
        let length = std::fs::metadata(&path).map_err(|error| StoreError::io(&path, error))?.len();
        // The values are what follows the header.
        let offset = length.checked_sub(meta.bytes() as u64);
        let wrong = |reason: &str| StoreError::Format { path: path.clone(), reason: reason.into() };
        let offset = offset.ok_or_else(|| wrong("it is cut off"))?;
        let block = Block::whole(meta.shape);
        let parts = vec![StoredPart { file: path.display().to_string(), offset, block }];
        let data = values::read(&self.places, &StoredValues { meta, need: block, parts })?;
        match crc32fast::hash(&data.bytes) == checksum {
            true => Ok(data),
            false => Err(wrong("its bytes are not those that were written")),
        }
    }

    /// Removes the file of a number; one that cannot be removed goes with the folder.
    pub fn remove(&self, number: u64) {
        let _ = std::fs::remove_file(self.path.join(name(number)));
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SpillFolder {
    fn drop(&mut self) {
        // Whoever makes the next one in the same place tries again.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn name(number: u64) -> String {
    format!("{number}.safetensors")
}

/// Removes the folders of processes that are gone.
fn remove_stale(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let process = process.and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        let is_gone =
            process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists());
        if is_gone {
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
        std::fs::create_dir_all(parent.join("gt-spill-4294967294-0")).unwrap();
        let folder = SpillFolder::create(&parent).unwrap();
        assert!(!parent.join("gt-spill-4294967294-0").exists(), "its process is gone");
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
        let path = folder.path().to_path_buf();
        drop(folder);
        assert!(!path.exists());
        std::fs::remove_dir_all(parent).unwrap();
    }
}
