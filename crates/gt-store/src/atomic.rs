//! Files that are there whole, or not at all.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::fs::{Dir, File, OpenOptions};

use crate::place::{DataRoots, FileIn};
use crate::{Result, StoreError};

/// A file in the making: under another name until it is complete and on the disk. Dropped before
/// [`AtomicFile::commit`], it leaves what was there before.
pub struct AtomicFile {
    path: PathBuf,
    place: FileIn,
    temporary: PathBuf,
    file: Option<File>,
}

impl AtomicFile {
    /// Begins a file at `path`; in a folder that is made if `make`.
    ///
    /// # Errors
    /// The folder is missing, or may not be written.
    pub fn create(places: &DataRoots, path: &Path, make: bool) -> Result<AtomicFile> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let place = places.find(path, make)?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let (name, process) = (place.name.display(), std::process::id());
            let temporary = PathBuf::from(format!(".{name}.{process}-{number}.part"));
            match place.folder.open_with(&temporary, &options) {
                Ok(file) => {
                    let (path, file) = (path.to_path_buf(), Some(file));
                    return Ok(AtomicFile { path, place, temporary, file });
                }
                // Left by a process of the same number that was killed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(StoreError::io(path, error)),
            }
        }
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// The disk is full, or another error of the system.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let file = self.file.as_mut().expect("the file is open until it is committed");
        file.write_all(bytes).map_err(|error| StoreError::io(&self.path, error))
    }

    /// Puts the file on the disk and under its name.
    ///
    /// # Errors
    /// The disk is full, or another error of the system; what was there before is there still.
    pub fn commit(mut self) -> Result<()> {
        let FileIn { folder, name } = &self.place;
        let file = self.file.as_ref().expect("the file is open until it is committed");
        let done = file
            .sync_all()
            .and_then(|()| folder.rename(&self.temporary, folder, name))
            .and_then(|()| sync_folder(folder));
        done.map_err(|error| StoreError::io(&self.path, error))?;
        self.file = None;
        Ok(())
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if self.file.is_some() {
            // Nothing can be done about a file that cannot be removed; its name says what it is.
            let _ = self.place.folder.remove_file(&self.temporary);
        }
    }
}

/// Has the entries of a folder written to the disk.
fn sync_folder(folder: &Dir) -> io::Result<()> {
    folder.open(".")?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("gt-store-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    #[test]
    fn a_file_is_there_once_it_is_complete() {
        let folder = folder("atomic");
        let path = folder.join("value");
        let mut file = AtomicFile::create(&DataRoots::Anywhere, &path, false).expect("a file");
        file.write(b"new").expect("room");
        assert!(!path.exists());
        file.commit().expect("room");
        assert_eq!(fs::read(&path).expect("a file"), b"new");
        let mut other = AtomicFile::create(&DataRoots::Anywhere, &path, false).expect("a file");
        other.write(b"half").expect("room");
        drop(other);
        assert_eq!(fs::read(&path).expect("a file"), b"new");
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1);
        fs::remove_dir_all(folder).expect("it is ours");
    }
}
