//! The folders in which files may be read and written.

use std::io;
use std::path::{Component, Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use crate::{Result, StoreError};

/// The allowed folders.
pub enum DataRoots {
    /// Every folder that this process may access.
    Anywhere,
    /// These folders and their subfolders: neither `..` nor links lead outside.
    Below(Vec<DataRoot>),
}

/// A folder that an operator allows.
pub struct DataRoot {
    path: PathBuf,
    folder: Dir,
}

/// A file in an open folder.
pub struct FileIn {
    pub folder: Dir,
    /// The file's name in the folder.
    pub name: PathBuf,
}

impl DataRoot {
    /// Opens a folder.
    ///
    /// # Errors
    /// It does not exist, or may not be read.
    pub fn open(path: &Path) -> Result<DataRoot> {
        let whole = std::path::absolute(path).map_err(|error| StoreError::io(path, error))?;
        let folder = Dir::open_ambient_dir(&whole, ambient_authority())
            .map_err(|error| StoreError::io(path, error))?;
        Ok(DataRoot { path: whole, folder })
    }

    /// The folder's absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl DataRoots {
    /// Resolves a file's path, creating its folder if `make`.
    ///
    /// # Errors
    /// The path is outside the allowed folders, or its folder is missing or cannot be created.
    pub fn find(&self, path: &Path, make: bool) -> Result<FileIn> {
        let name = path.file_name().map(PathBuf::from).ok_or_else(|| {
            StoreError::io(path, io::Error::new(io::ErrorKind::InvalidInput, "no file's name"))
        })?;
        let parent = path.parent().unwrap_or(Path::new(""));
        let found = match self {
            DataRoots::Anywhere => anywhere(parent, make),
            DataRoots::Below(roots) => {
                let (root, rest) = below(roots, path, parent)?;
                enter(root, rest, make)
            }
        };
        let folder = found.map_err(|error| StoreError::io(path, error))?;
        Ok(FileIn { folder, name })
    }
}

fn anywhere(parent: &Path, make: bool) -> io::Result<Dir> {
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    if make {
        std::fs::create_dir_all(parent)?;
    }
    Dir::open_ambient_dir(parent, ambient_authority())
}

/// Returns the root that contains a folder, and the relative path from there.
fn below<'a>(
    roots: &'a [DataRoot],
    path: &Path,
    parent: &'a Path,
) -> Result<(&'a DataRoot, &'a Path)> {
    let forbidden = |reason: String| StoreError::Forbidden { path: path.to_path_buf(), reason };
    if parent.components().any(|part| part == Component::ParentDir) {
        return Err(forbidden("'..' may not be part of a path".into()));
    }
    let found = roots.iter().find_map(|root| Some((root, parent.strip_prefix(&root.path).ok()?)));
    found.ok_or_else(|| {
        let allowed: Vec<String> =
            roots.iter().map(|root| root.path.display().to_string()).collect();
        forbidden(if allowed.is_empty() {
            "the workers may use no files\n  hint: start server and workers with --data-root FOLDER"
                .into()
        } else {
            format!("the workers may only use files below {}", allowed.join(" and "))
        })
    })
}

fn enter(root: &DataRoot, rest: &Path, make: bool) -> io::Result<Dir> {
    if rest.as_os_str().is_empty() {
        return root.folder.try_clone();
    }
    if make {
        root.folder.create_dir_all(rest)?;
    }
    root.folder.open_dir(rest)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn no_way_leads_out_of_a_root() {
        let top = std::env::temp_dir().join(format!("gt-store-place-{}", std::process::id()));
        let root = top.join("root");
        fs::create_dir_all(root.join("in")).expect("a folder");
        fs::create_dir_all(top.join("secret")).expect("a folder");
        std::os::unix::fs::symlink(top.join("secret"), root.join("link")).expect("a link");
        std::os::unix::fs::symlink("in", root.join("inner")).expect("a link");
        let places = DataRoots::Below(vec![DataRoot::open(&root).expect("a folder")]);
        for good in ["file", "in/file", "inner/file"] {
            places.find(&root.join(good), false).expect(good);
        }
        places.find(&root.join("new/one/file"), true).expect("it is made");
        assert!(root.join("new/one").is_dir());
        for bad in ["link/file", "../secret/file", "in/../../secret/file", "link/new/file"] {
            assert!(places.find(&root.join(bad), true).is_err(), "{bad}");
        }
        for bad in ["/etc/passwd", "file", ""] {
            assert!(places.find(Path::new(bad), false).is_err(), "{bad}");
        }
        assert!(!top.join("secret/new").exists());
        let none = DataRoots::Below(Vec::new()).find(&root.join("file"), false);
        assert!(none.is_err_and(|error| error.to_string().contains("--data-root")));
        fs::remove_dir_all(top).expect("it is ours");
    }
}
