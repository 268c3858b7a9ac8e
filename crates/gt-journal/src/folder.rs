//! The folder of a journal, which one process uses at a time.

use std::fs::{self, File, TryLockError};
use std::io::{BufWriter, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::JournalError;
use crate::segment::{self, Damage};

/// The bytes after which a long write is synced to disk before it continues.
pub(crate) const SYNC: u64 = 64 << 20;

/// A folder with a journal, locked until this is dropped.
pub struct Folder {
    path: PathBuf,
    schema: u64,
    /// The number of the segment.
    number: u64,
    _lock: File,
}

/// The contents of a journal.
#[derive(Default)]
pub struct JournalContents {
    pub records: Vec<Vec<Bytes>>,
    /// Where reading stopped, if the end is damaged.
    pub damage: Option<Damage>,
}

impl Folder {
    /// Opens a folder, creating it if needed, and reads its journal, whose records must have this
    /// `schema`.
    ///
    /// # Errors
    /// It cannot be used, another process uses it, or its journal has another schema or format.
    pub fn open(path: &Path, schema: u64) -> Result<(Folder, JournalContents), JournalError> {
        Folder::open_with(path, schema, |file| {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok(Bytes::from(bytes))
        })
    }

    /// Opens a folder like [`Folder::open`]; `read` reads or maps the journal file, which is no longer
    /// written to.
    ///
    /// # Errors
    /// It cannot be used, another process uses it, or its journal has another schema or format.
    pub fn open_with(
        path: &Path,
        schema: u64,
        read: impl FnOnce(&mut File) -> std::io::Result<Bytes>,
    ) -> Result<(Folder, JournalContents), JournalError> {
        let error = |action| move |error| JournalError::file(action, path, error);
        // Records hold users' data: only the owner may read them.
        let mut folder = fs::DirBuilder::new();
        folder.recursive(true).mode(0o700).create(path).map_err(error("making the folder"))?;
        let lock = lock(&path.join("lock"), path)?;
        let mut segments: Vec<u64> = Vec::new();
        for entry in fs::read_dir(path).map_err(error("reading the folder"))? {
            let name = entry.map_err(error("reading the folder"))?.file_name();
            segments.extend(name.to_str().and_then(number_of));
        }
        segments.sort_unstable();
        let last = segments.last().copied();
        let number = last.unwrap_or(0);
        let folder = Folder { path: path.to_path_buf(), schema, number, _lock: lock };
        let Some(last) = last else { return Ok((folder, JournalContents::default())) };
        let file = folder.segment(last);
        let bytes = File::open(&file).and_then(|mut opened| read(&mut opened));
        let bytes = bytes.map_err(|error| JournalError::file("reading", &file, error))?;
        let read = segment::read(&bytes, schema).map_err(|reason| {
            let (path, reason) = (file.display().to_string(), reason.to_string());
            JournalError::Foreign { path, reason }
        })?;
        if read.damage.is_some() {
            // The last foreign journal is kept for inspection.
            folder.remove(|name| name.starts_with("damaged-"));
            let _ = fs::hard_link(&file, path.join(format!("damaged-{last:08}")));
        }
        Ok((folder, JournalContents { records: read.records, damage: read.damage }))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the journal, which is out of date.
    pub fn clear(&self) {
        self.remove(|name| number_of(name).is_some());
    }

    /// Removes files by name. Errors are ignored: there is no further remedy.
    fn remove(&self, is_one: impl Fn(&str) -> bool) {
        let Ok(entries) = fs::read_dir(&self.path) else { return };
        for entry in entries.flatten() {
            if entry.file_name().to_str().is_some_and(&is_one) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    fn segment(&self, number: u64) -> PathBuf {
        self.path.join(format!("journal-{number:08}"))
    }

    /// Replaces the journal by one with these records. The old one stays until the new one is durable.
    /// Returns the open segment and its length.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn replace(
        &mut self,
        records: impl Iterator<Item = Vec<Bytes>>,
    ) -> std::io::Result<(File, u64)> {
        let (before, next) = (self.segment(self.number), self.segment(self.number + 1));
        let temporary = self.path.join("journal.new");
        let mut options = File::options();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let mut writer = BufWriter::with_capacity(1 << 20, options.open(&temporary)?);
        segment::write_header(self.schema, &mut writer)?;
        let (mut length, mut durable) = (0, 0);
        for record in records {
            length += segment::write_record(&record, &mut writer)?;
            if length - durable > SYNC {
                // Progress distinguishes a slow disk from one that hangs.
                writer.flush()?;
                writer.get_ref().sync_data()?;
                durable = length;
            }
        }
        let file = writer.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        file.sync_data()?;
        fs::rename(&temporary, &next)?;
        // The folder's entries must be durable as well.
        File::open(&self.path)?.sync_all()?;
        self.number += 1;
        if let Err(error) = fs::remove_file(&before)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return Err(error);
        }
        Ok((file, length))
    }
}

/// Returns whether a folder has a journal; true if the file system does not answer.
pub fn has_journal(path: &Path) -> bool {
    match fs::read_dir(path) {
        Ok(entries) => {
            let mut names = entries.flatten().map(|entry| entry.file_name());
            names.any(|name| name.to_str().and_then(number_of).is_some())
        }
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

fn number_of(name: &str) -> Option<u64> {
    name.strip_prefix("journal-")?.parse().ok()
}

/// Locks a file, and writes this process's id into it.
fn lock(file: &Path, folder: &Path) -> Result<File, JournalError> {
    let error = |error| JournalError::file("locking", file, error);
    let mut options = File::options();
    let mut lock =
        options.read(true).write(true).create(true).truncate(false).open(file).map_err(error)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut process = String::new();
            let _ = lock.read_to_string(&mut process);
            let (path, process) = (folder.display().to_string(), process.trim().to_string());
            return Err(JournalError::InUse { path, process });
        }
        Err(TryLockError::Error(reason)) => return Err(error(reason)),
    }
    lock.set_len(0).map_err(error)?;
    writeln!(lock, "{}", std::process::id()).map_err(error)?;
    Ok(lock)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(text: &'static str) -> Vec<Bytes> {
        vec![Bytes::from_static(text.as_bytes())]
    }

    #[test]
    fn a_folder_is_used_by_one_and_keeps_the_last_segment() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("state");
        let (mut folder, contents) = Folder::open(&path, 1).unwrap();
        assert!(contents.records.is_empty());
        let again = Folder::open(&path, 1).err().unwrap().to_string();
        assert!(again.contains("in use") && again.contains(&std::process::id().to_string()));
        folder.replace([record("a")].into_iter()).unwrap();
        let (mut file, _) = folder.replace([record("b"), record("c")].into_iter()).unwrap();
        segment::write_record(&record("d"), &mut file).unwrap();
        file.write_all(b"a cut record").unwrap();
        drop((folder, file));
        let (_, contents) = Folder::open(&path, 1).unwrap();
        assert_eq!(contents.records, [record("b"), record("c"), record("d")]);
        assert_eq!(contents.damage.unwrap().lost, 12);
        assert_eq!(
            fs::read_dir(&path).unwrap().count(),
            3,
            "the segment, the lock, the damaged one"
        );
    }

    #[test]
    fn what_is_no_journal_is_refused() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("journal-00000003"), "a diary, perhaps a long one").unwrap();
        let refused = Folder::open(place.path(), 1).err().unwrap().to_string();
        assert!(refused.contains("journal-00000003' is no journal of gt"), "{refused}");
    }
}
