//! Finds this user's running dispatchers on this machine.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::NetError;
use crate::keyring::runtime_folder;
use crate::local::{REFUSES_WHEN_FULL, connect};
use crate::process;

/// A running dispatcher.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// A server.
    Server { address: String, process: u32 },
    /// A program with an embedded session, and its socket.
    Embedded { process: u32, socket: PathBuf },
}

/// Returns all dispatchers of this user on this machine: servers first, in the order of their
/// addresses.
///
/// # Errors
/// The runtime folder cannot be read.
pub fn running() -> Result<Vec<Found>, NetError> {
    let folder = runtime_folder()?;
    let entries = fs::read_dir(&folder).map_err(|error| NetError::File {
        action: "reading",
        path: folder.display().to_string(),
        error,
    })?;
    let (mut servers, mut embedded) = (Vec::new(), Vec::new());
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        if name.starts_with("server-") && name.ends_with(".lock") {
            servers.extend(server(&path));
        } else if let Some(number) =
            name.strip_prefix("embedded-").and_then(|rest| rest.strip_suffix(".sock"))
            && let Ok(process) = number.parse()
        {
            embedded.extend(program(process, &path));
        }
    }
    servers.sort_by_key(|(address, _)| address.clone());
    embedded.sort_unstable();
    let servers = servers.into_iter().map(|(address, process)| Found::Server { address, process });
    let embedded =
        embedded.into_iter().map(|(process, socket)| Found::Embedded { process, socket });
    Ok(servers.chain(embedded).collect())
}

/// The address and process in a server's lock file, if the lock is held.
fn server(path: &Path) -> Option<(String, u32)> {
    let file = File::open(path).ok()?;
    if file.try_lock_shared().is_ok() {
        return None;
    }
    let text = fs::read_to_string(path).ok()?;
    let (process, address) = text.trim().split_once('\n')?;
    Some((address.to_string(), process.parse().ok()?))
}

/// A program whose socket accepts connections; a dead program's socket is removed. That a process
/// with its number exists is no evidence, as the number may have been reused, or belong to another
/// container.
fn program(number: u32, socket: &Path) -> Option<(u32, PathBuf)> {
    match connect(socket, Duration::ZERO) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            // A stopped program, whose queue is full, keeps its socket.
            if !(REFUSES_WHEN_FULL && process::exists(number)) {
                let _ = fs::remove_file(socket);
            }
            None
        }
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        // A full accept queue also proves that the program runs.
        _ => Some((number, socket.to_path_buf())),
    }
}
