//! Paths that must be the user's alone: keys, the state of a server, sockets. Another user who can put
//! a file in place could otherwise choose the key that a server starts with.

use std::fs::{self, DirBuilder, Metadata};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;

use crate::error::NetError;

/// Creates a folder if it is missing, and checks that it belongs to this user and that no other
/// user may enter.
///
/// # Errors
/// It cannot be created; it is a link, belongs to another user, or is open to others.
pub fn folder(path: &Path) -> Result<(), NetError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(path).map_err(failed("making", path))?;
    let meta = fs::symlink_metadata(path).map_err(failed("reading", path))?;
    let reason = if meta.is_symlink() {
        "it is a link; name the folder itself".to_string()
    } else if !meta.is_dir() {
        "it is not a folder".to_string()
    } else {
        return check(path, &meta, &[own_user()], 0o700);
    };
    Err(unsafe_path(path, reason))
}

/// Checks a key file that the program found by itself: it belongs to this user, and no other user
/// may read or change it.
///
/// # Errors
/// It cannot be read; it is not a file, belongs to another user, or is open to others.
pub fn own_file(path: &Path) -> Result<(), NetError> {
    let meta = fs::symlink_metadata(path).map_err(failed("reading", path))?;
    if !meta.is_file() {
        return Err(unsafe_path(path, "it is not a file".into()));
    }
    check(path, &meta, &[own_user()], 0o600)
}

/// Checks a key file that the user named, which may be a link: only its owner may read or change
/// it. If another user owns it, such as a secret that is mounted into a container, this user cannot
/// restrict who reads it: it is enough that others cannot change it.
///
/// # Errors
/// It cannot be read; it is open to others.
pub fn named_file(path: &Path) -> Result<(), NetError> {
    let meta = fs::metadata(path).map_err(failed("reading", path))?;
    if meta.uid() != own_user() && meta.permissions().mode() & 0o022 == 0 {
        return Ok(());
    }
    check(path, &meta, &[meta.uid()], 0o600)
}

/// Checks the path of a socket: any existing file is a socket of this user, which a new one
/// replaces.
///
/// # Errors
/// Another file exists, which is left unchanged.
pub fn socket(path: &Path) -> Result<(), NetError> {
    let Ok(meta) = fs::symlink_metadata(path) else { return Ok(()) };
    if !meta.file_type().is_socket() {
        let reason = "it is there and is no socket; give another path, or remove it".to_string();
        return Err(unsafe_path(path, reason));
    }
    if meta.uid() != own_user() {
        return Err(unsafe_path(path, format!("it belongs to user {}", meta.uid())));
    }
    Ok(())
}

fn check(path: &Path, meta: &Metadata, owners: &[u32], mode: u32) -> Result<(), NetError> {
    let own = own_user();
    let reason = if !owners.contains(&meta.uid()) {
        format!("it belongs to user {}, and this is user {own}", meta.uid())
    } else if meta.permissions().mode() & 0o077 != 0 {
        format!("others may use it; make it private with chmod {mode:o}")
    } else {
        return Ok(());
    };
    Err(unsafe_path(path, reason))
}

fn own_user() -> u32 {
    // SAFETY: this call only reads the process's user id.
    unsafe { libc::geteuid() }
}

fn unsafe_path(path: &Path, reason: String) -> NetError {
    NetError::UnsafePath { path: path.display().to_string(), reason }
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> NetError {
    let path = path.display().to_string();
    move |error| NetError::File { action, path, error }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn place() -> std::path::PathBuf {
        let place = std::env::temp_dir().join(format!("gt-private-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        place
    }

    #[test]
    fn what_others_may_use_is_refused() {
        let place = place().join("folders");
        folder(&place.join("new")).unwrap();
        for mode in [0o750, 0o701, 0o777] {
            set_mode(&place.join("new"), mode);
            assert!(folder(&place.join("new")).is_err(), "{mode:o}");
        }
        set_mode(&place.join("new"), 0o700);
        symlink(place.join("new"), place.join("link")).unwrap();
        assert!(folder(&place.join("link")).is_err());
        let key = place.join("key");
        fs::write(&key, "gt1-00").unwrap();
        for (mode, is_fine) in [(0o600, true), (0o400, true), (0o640, false), (0o602, false)] {
            set_mode(&key, mode);
            assert_eq!(own_file(&key).is_ok(), is_fine, "{mode:o}");
            assert_eq!(named_file(&key).is_ok(), is_fine, "{mode:o}");
        }
        set_mode(&key, 0o600);
        symlink(&key, place.join("key link")).unwrap();
        named_file(&place.join("key link")).unwrap();
        assert!(own_file(&place.join("key link")).is_err());
        fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn only_a_socket_is_replaced() {
        let place = place();
        let path = place.join("socket");
        socket(&path).unwrap();
        let listener = UnixListener::bind(&path).unwrap();
        socket(&path).unwrap();
        drop(listener);
        fs::remove_file(&path).unwrap();
        fs::write(&path, "precious").unwrap();
        assert!(socket(&path).is_err() && fs::read_to_string(&path).unwrap() == "precious");
        fs::remove_file(&path).unwrap();
    }
}
