//! A lock file per address, so that a user runs one server at a time on it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::address::Address;
use crate::error::NetError;

/// The registry holds a lock for less than this while it searches for running servers.
const LOOKING: Duration = Duration::from_millis(20);

/// The lock on an address, for cases in which ZeroMQ itself would not notice a second server. Its
/// file, which [`crate::registry`] reads, is deleted on drop.
pub struct AddressLock {
    file: File,
    path: PathBuf,
}

impl AddressLock {
    /// Locks an address, and writes this process's id for error messages of later servers.
    ///
    /// # Errors
    /// Another server holds the lock.
    pub fn take(address: &Address) -> Result<AddressLock, NetError> {
        let name = match address {
            Address::Tcp { port, .. } => format!("server-{port}.lock"),
            Address::Ipc { path } => format!("server-{}.lock", path.replace('/', "+")),
        };
        let path = crate::keyring::runtime_folder()?.join(name);
        let error =
            |error| NetError::File { action: "locking", path: path.display().to_string(), error };
        let until = Instant::now() + LOOKING;
        loop {
            let mut file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)
                .map_err(error)?;
            let is_held = match file.try_lock() {
                Ok(()) => false,
                Err(TryLockError::WouldBlock) => true,
                Err(TryLockError::Error(reason)) => return Err(error(reason)),
            };
            if is_held {
                if Instant::now() < until {
                    thread::sleep(LOOKING / 10);
                    continue;
                }
                let mut owner = String::new();
                let _ = file.read_to_string(&mut owner);
                let process = owner.lines().next().unwrap_or_default();
                let by = format!(" by another gt server (process {process})");
                return Err(NetError::InUse { address: address.to_string(), by });
            }
            // The previous holder may have deleted the file after it was opened here.
            if is_at(&file, &path) {
                file.set_len(0).map_err(error)?;
                let note = format!("{}\n{address}\n", std::process::id());
                file.write_all(note.as_bytes()).map_err(error)?;
                return Ok(AddressLock { file, path });
            }
        }
    }
}

impl Drop for AddressLock {
    fn drop(&mut self) {
        if is_at(&self.file, &self.path) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether an open file is the one at this path.
fn is_at(file: &File, path: &Path) -> bool {
    let same = |(a, b): (fs::Metadata, fs::Metadata)| (a.dev(), a.ino()) == (b.dev(), b.ino());
    file.metadata().ok().zip(fs::metadata(path).ok()).is_some_and(same)
}
