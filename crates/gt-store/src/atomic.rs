//! Files that are complete or absent (write to a temporary name, sync, rename).

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::fs::{Dir, File, OpenOptions};

use crate::place::{DataRoots, FileIn};
use crate::{Result, StoreError};

/// A file that is being written, under a temporary name until it is complete and synced. If it is
/// dropped before [`AtomicFile::commit`], the previous file stays.
pub struct AtomicFile {
    path: PathBuf,
    place: FileIn,
    temporary: PathBuf,
    file: Option<File>,
}

impl AtomicFile {
    /// Starts a file at `path`, creating its folder if `make`.
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
                // Left by a killed process with the same id.
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

    /// Syncs the file and renames it to its final name.
    ///
    /// # Errors
    /// The disk is full, or another error of the system; the previous file stays.
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
            // A file that cannot be removed is left; its name identifies it as temporary.
            let _ = self.place.folder.remove_file(&self.temporary);
        }
    }
}

/// Syncs the entries of a folder.
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
