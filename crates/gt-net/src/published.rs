//! Where a server is: at a fixed address, or at the one that it has published in a file.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::address::{Address, without_secret};
use crate::error::NetError;

/// The name of the key file beside the file of an address.
const KEY: &str = "key";

/// Where a server is, as users say it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ServerAddress {
    Fixed(Address),
    /// A file in which the server publishes its address: it may be another one after a restart.
    Published(PathBuf),
}

impl ServerAddress {
    /// Parses an address, or `file:///path`.
    ///
    /// # Errors
    /// The text has another form.
    pub fn parse(text: &str) -> Result<ServerAddress, NetError> {
        match text.strip_prefix("file://") {
            None => Address::parse(text).map(ServerAddress::Fixed),
            Some(path) if Path::new(path).is_absolute() => {
                Ok(ServerAddress::Published(PathBuf::from(path)))
            }
            Some(_) => Err(NetError::BadAddress { given: without_secret(text) }),
        }
    }

    /// Returns the address at which the server is now.
    ///
    /// # Errors
    /// No server has published its address, or the file contains something else.
    pub fn resolve(&self) -> Result<Address, NetError> {
        match self {
            ServerAddress::Fixed(address) => Ok(address.clone()),
            ServerAddress::Published(path) => match fs::read_to_string(path) {
                Ok(text) => Address::parse(text.trim()),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    Err(NetError::NotPublished { path: path.display().to_string() })
                }
                Err(error) => Err(file_error("reading", path, error)),
            },
        }
    }

    /// Returns the key file of a published server, if it has one: `key` in the folder of its address.
    pub fn key_file(&self) -> Option<PathBuf> {
        let ServerAddress::Published(path) = self else { return None };
        Some(path.with_file_name(KEY)).filter(|path| path.exists())
    }
}

impl std::fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ServerAddress::Fixed(address) => write!(f, "{address}"),
            ServerAddress::Published(path) => write!(f, "file://{}", path.display()),
        }
    }
}

/// The file of a server's address; removed on drop, unless another server has published its own
/// there.
pub struct AddressFile {
    path: PathBuf,
    text: String,
}

impl AddressFile {
    /// Publishes an address.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(path: &Path, address: &Address) -> Result<AddressFile, NetError> {
        let text = format!("{address}\n");
        let draft = path.with_extension(format!("new-{}", std::process::id()));
        let write = || -> io::Result<()> {
            let mut file =
                OpenOptions::new().write(true).create(true).truncate(true).open(&draft)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            // Atomic: no reader sees a part of an address.
            fs::rename(&draft, path)
        };
        write().map_err(|error| {
            let _ = fs::remove_file(&draft);
            file_error("publishing the address in", path, error)
        })?;
        Ok(AddressFile { path: path.to_path_buf(), text })
    }
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        if fs::read_to_string(&self.path).is_ok_and(|text| text == self.text) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn file_error(action: &'static str, path: &Path, error: io::Error) -> NetError {
    NetError::File { action, path: path.display().to_string(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_address_is_found_until_its_server_ends() {
        let path = std::env::temp_dir().join(format!("gt-address-{}", std::process::id()));
        let server = ServerAddress::parse(&format!("file://{}", path.display())).unwrap();
        let is_withdrawn = || matches!(server.resolve(), Err(NetError::NotPublished { .. }));
        assert!(is_withdrawn());
        let [first, second] = [4711, 4712].map(|port| Address::Tcp { host: "node7".into(), port });
        let file = AddressFile::write(&path, &first).unwrap();
        assert_eq!(server.resolve().unwrap(), first);
        // The next server publishes before the first has ended.
        let next = AddressFile::write(&path, &second).unwrap();
        drop(file);
        assert_eq!(server.resolve().unwrap(), second);
        drop(next);
        assert!(is_withdrawn());
        assert!(ServerAddress::parse("file://relative").is_err());
    }
}
