//! Begins recordings, as the environment asks for them.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use gt_client::{ClientError, Driver, Result, environment};

use crate::driver::RecordingDriver;
use crate::format::{LAYOUT, OperationName, RecordingHeader};
use crate::place::RecordedPlace;
use crate::substitute::{CommandSubstitution, ReadStored};
use crate::writer::RecordingWriter;

/// The variable that names the file.
const FILE: &str = "GT_RECORD";
/// The variable that leaves out data and names.
const ANONYMOUS: &str = "GT_RECORD_ANONYMOUS";

/// Variables that a recording does not have: keys, and those of the recording itself.
const LEFT_OUT: [&str; 3] = ["GT_KEY", FILE, ANONYMOUS];

/// The most recordings of one name.
const MOST: u32 = 10_000;

/// Returns whether sessions of this process are to be recorded.
pub fn is_asked() -> bool {
    std::env::var_os(FILE).is_some_and(|path| !path.is_empty())
}

/// Returns a driver that records its session if `GT_RECORD` names a file, and else the driver. `place`
/// returns where it is computed, and `read` reads values from the files of its workers.
///
/// # Errors
/// The file cannot be written.
pub fn record_if_asked(
    driver: Arc<dyn Driver>,
    place: impl FnOnce(&dyn Driver) -> RecordedPlace,
    read: ReadStored,
) -> Result<Arc<dyn Driver>> {
    match std::env::var_os(FILE).filter(|path| !path.is_empty()) {
        None => Ok(driver),
        Some(path) => {
            let is_anonymous = environment::switch(ANONYMOUS) == Some(true);
            let place = place(&*driver);
            let substitution = CommandSubstitution { is_anonymous, read };
            record(driver, place, Path::new(&path), substitution)
        }
    }
}

/// Returns a driver that records its session into a file. A file that exists stays: the recording
/// has a number in its name then.
///
/// # Errors
/// The file cannot be written.
pub fn record(
    driver: Arc<dyn Driver>,
    place: RecordedPlace,
    path: &Path,
    substitution: CommandSubstitution,
) -> Result<Arc<dyn Driver>> {
    let failed = |error: io::Error| {
        ClientError::usage(format!(
            "{FILE} is '{}': {error}\n  hint: name a file in a folder that you can write",
            path.display()
        ))
    };
    let (file, used) = create(path).map_err(failed)?;
    let header = header(place, substitution.is_anonymous);
    let writer = RecordingWriter::start(file, &used.display().to_string(), header);
    if used != path {
        let (path, used) = (path.display(), used.display());
        tracing::warn!("'{path}' exists: this session is recorded into '{used}'");
    }
    Ok(Arc::new(RecordingDriver::new(driver, writer.map_err(failed)?, substitution)))
}

/// Creates a file of this name, or with a number if it exists: `run.gts`, `run-2.gts`.
fn create(path: &Path) -> io::Result<(File, PathBuf)> {
    let mut number = 1;
    loop {
        let used = numbered(path, number);
        match OpenOptions::new().write(true).create_new(true).open(&used) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < MOST => {
                number += 1;
            }
            result => return result.map(|file| (file, used)),
        }
    }
}

/// Returns the name of the recording of a number.
fn numbered(path: &Path, number: u32) -> PathBuf {
    if number == 1 {
        return path.to_path_buf();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let ending = path.extension().map(|ending| format!(".{}", ending.to_string_lossy()));
    path.with_file_name(format!("{stem}-{number}{}", ending.unwrap_or_default()))
}

fn header(place: RecordedPlace, is_anonymous: bool) -> RecordingHeader {
    let program = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let environment = std::env::vars_os().filter_map(|(name, value)| {
        let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
        let is_kept = name.starts_with("GT_") && !LEFT_OUT.contains(&name.as_str());
        is_kept.then_some((name, value))
    });
    RecordingHeader {
        layout: LAYOUT,
        version: env!("CARGO_PKG_VERSION").into(),
        begun: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
        program: program.filter(|_| !is_anonymous).collect(),
        place: match is_anonymous {
            true => RecordedPlace { description: String::new(), ..place },
            false => place,
        },
        environment: environment.filter(|_| !is_anonymous).collect(),
        is_anonymous,
        operations: OperationName::all(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_exists_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.gts");
        for name in ["run.gts", "run-2.gts", "run-3.gts"] {
            assert_eq!(create(&path).unwrap().1, folder.path().join(name));
        }
        assert_eq!(numbered(Path::new("a/run"), 2), Path::new("a/run-2"));
    }
}
