//! The storage of keys.
//!
//! A server without a given key generates one in the user's runtime folder, where that user's
//! workers and clients on the machine find it. Elsewhere the key is in a file or in `GT_KEY`.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::address::Address;
use crate::error::NetError;
use crate::keys::Key;
use crate::private;

/// The file of a key that its server has generated; deleted on drop.
pub struct KeyFile {
    path: PathBuf,
}

impl Drop for KeyFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns the user's key: from a file, or else from `GT_KEY`.
pub fn given(key_file: Option<&Path>) -> Result<Option<Key>, NetError> {
    if let Some(path) = key_file {
        return read(path).map(Some);
    }
    match std::env::var("GT_KEY") {
        Ok(text) if !text.trim().is_empty() => Key::parse(&text).map(Some),
        _ => Ok(None),
    }
}

/// Returns the key in a file, which no other user may read.
pub fn read(path: &Path) -> Result<Key, NetError> {
    private::named_file(path)?;
    let text = fs::read_to_string(path).map_err(|error| file_error("reading", path, error))?;
    Key::parse(&text)
}

/// Stores a server's key where peers of the same user find it.
pub fn keep(address: &Address, key: &Key) -> Result<KeyFile, NetError> {
    let folder = runtime_folder()?;
    let path = folder.join(file_name(address));
    let draft = folder.join(format!("{}.{}", file_name(address), std::process::id()));
    let write = || -> std::io::Result<()> {
        let _ = fs::remove_file(&draft);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        file.write_all(key.to_text().as_bytes())?;
        // Atomic: no reader sees a partial key.
        fs::rename(&draft, &path)
    };
    write().map_err(|error| file_error("writing", &path, error))?;
    Ok(KeyFile { path })
}

/// Removes the key file that a killed server may have left for this address, as the new server
/// stores none.
pub fn forget(address: &Address) -> Result<(), NetError> {
    let path = runtime_folder()?.join(file_name(address));
    match fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(file_error("removing", &path, error))
        }
        _ => Ok(()),
    }
}

/// Returns the key that a server of this user at this address, on this machine, has generated.
pub fn find(address: &Address) -> Result<Option<Key>, NetError> {
    let path = runtime_folder()?.join(file_name(address));
    match fs::read_to_string(&path) {
        Ok(text) => Key::parse(&text).map(Some),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(file_error("reading", &path, error)),
    }
}

fn file_name(address: &Address) -> String {
    match address {
        Address::Tcp { port, .. } => format!("server-{port}.key"),
        Address::Ipc { path } => format!("server-{}.key", path.replace('/', "+")),
    }
}

/// Returns where the key of a server on this machine is expected, as the end of a sentence.
pub fn looked_for(address: &Address) -> String {
    let path = folder_path().join(file_name(address));
    if address.is_local() { format!(" in {}", path.display()) } else { String::new() }
}

/// Returns the folder for temporary files; an empty `TMPDIR` is ignored.
pub fn temporary_folder() -> PathBuf {
    let given = std::env::var_os("TMPDIR").filter(|path| !path.is_empty());
    given.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
}

fn folder_path() -> PathBuf {
    // SAFETY: this call only reads the process's user id.
    let user = unsafe { libc::geteuid() };
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|path| !path.is_empty()) {
        Some(base) if Path::new(&base).is_dir() => Path::new(&base).join("gt"),
        _ => temporary_folder().join(format!("gt-{user}")),
    }
}

/// The user's runtime folder: created if needed, and only used if no other user can access it.
pub fn runtime_folder() -> Result<PathBuf, NetError> {
    let folder = folder_path();
    private::folder(&folder).map_err(|error| match error {
        NetError::File { action: "making", path, error } => NetError::NoFolder { path, error },
        error => error,
    })?;
    Ok(folder)
}

fn file_error(action: &'static str, path: &Path, error: std::io::Error) -> NetError {
    NetError::File { action, path: path.display().to_string(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_server_that_was_killed_is_removed() {
        let path = format!("/nowhere/{}", std::process::id());
        let address = Address::Ipc { path };
        let key = Key::generate();
        std::mem::forget(keep(&address, &key).unwrap());
        assert_eq!(find(&address).unwrap(), Some(key));
        forget(&address).unwrap();
        assert_eq!(find(&address).unwrap(), None);
        forget(&address).unwrap();
    }
}
