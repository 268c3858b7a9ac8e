//! Tensor values in files.
//!
//! - [`place`]: the folders in which files may be read and written.
//! - [`values`]: blocks of tensors, as workers write and read them.
//! - [`atomic`]: files that are complete or absent.
//! - [`mapped`]: values in files that are mapped into memory.
//! - [`spill`]: spilled tensors of a worker.
//! - [`safetensors`]: named tensors in one file, a format shared with other programs.
//!
//! This crate knows dtypes, shapes and values of `gt-ir`, but neither sessions nor workers.

pub mod atomic;
pub mod mapped;
pub mod place;
pub mod safetensors;
pub mod spill;
pub mod values;

use std::path::{Path, PathBuf};

/// An error with a file of values.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: std::io::Error },

    /// The file is outside the allowed folders.
    #[error("{}: {reason}", path.display())]
    Forbidden { path: PathBuf, reason: String },

    /// The file violates its format.
    #[error("{}: {reason}", path.display())]
    Format { path: PathBuf, reason: String },

    #[error("{}: there is no tensor '{name}'{hint}", path.display())]
    NoTensor { path: PathBuf, name: String, hint: String },

    #[error(
        "{}: tensor '{name}' has dtype {dtype}, which GT does not have\n  hint: convert the file to one of its dtypes, such as BF16 or F32", path.display()
    )]
    DType { path: PathBuf, name: String, dtype: String },
}

pub type Result<T> = std::result::Result<T, StoreError>;

impl StoreError {
    pub fn io(path: &Path, error: std::io::Error) -> StoreError {
        StoreError::Io { path: path.to_path_buf(), error }
    }

    fn format(path: &Path, reason: impl Into<String>) -> StoreError {
        StoreError::Format { path: path.to_path_buf(), reason: reason.into() }
    }
}
