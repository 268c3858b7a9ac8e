//! The sinks of the instruction log: a file, [`tracing`], or none.

use std::fs::File;
use std::io::{LineWriter, Write};
use std::path::{Path, PathBuf};

use gt_dispatcher::log::Log;
use tracing::{Level, debug, enabled, info, warn};

/// The log that the environment configures, if any.
pub fn log_from_environment() -> Option<Log> {
    let path = std::env::var_os("GT_INSTRUCTION_LOG").filter(|path| !path.is_empty());
    let path = path.map(PathBuf::from);
    open(path.as_deref()).unwrap_or_else(|error| {
        let path = path.unwrap_or_default();
        warn!("GT_INSTRUCTION_LOG: cannot write to {}: {error}", path.display());
        None
    })
}

/// A log to a new file, and to `tracing` as the environment configures.
pub fn log_to_file(path: &Path) -> std::io::Result<Option<Log>> {
    open(Some(path))
}

fn open(path: Option<&Path>) -> std::io::Result<Option<Log>> {
    let mut file = path.map(File::create).transpose()?.map(LineWriter::new);
    let is_told =
        enabled!(target: "gt::client", Level::INFO) || enabled!(target: "gt::worker", Level::INFO);
    if file.is_none() && !is_told {
        return Ok(None);
    }
    Ok(Some(Log::new(Box::new(move |line| {
        // A full disk must not stop the computation.
        if let Some(file) = &mut file {
            let _ = writeln!(file, "{line}");
        }
        if is_told {
            tell(line);
        }
    }))))
}

/// Emits a line to `tracing`: links and refusals as info, commands as debug.
fn tell(line: &str) {
    let field = |number| line.split(" | ").nth(number).unwrap_or_default();
    let is_worker = field(3).starts_with("WORKER");
    let is_link = field(4).starts_with("Link")
        || field(4).starts_with("WorkerLost")
        || field(2).starts_with("ERROR");
    match (is_worker, is_link) {
        (true, true) => info!(target: "gt::worker", "{line}"),
        (true, false) => debug!(target: "gt::worker", "{line}"),
        (false, true) => info!(target: "gt::client", "{line}"),
        (false, false) => debug!(target: "gt::client", "{line}"),
    }
}
