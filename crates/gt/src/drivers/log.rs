//! Where the instruction log goes.

use std::fs::File;
use std::io::{LineWriter, Write};

use gt_dispatcher::log::Log;

/// The log into the file that `GT_INSTRUCTION_LOG` names, if it is set.
pub fn log_from_environment() -> Option<Log> {
    let path = std::env::var_os("GT_INSTRUCTION_LOG").filter(|path| !path.is_empty())?;
    log_to_file(std::path::Path::new(&path))
        .map_err(|error| {
            eprintln!("gt: GT_INSTRUCTION_LOG: cannot write to {}: {error}", path.display());
        })
        .ok()
}

/// The log into a file, made anew.
pub fn log_to_file(path: &std::path::Path) -> std::io::Result<Log> {
    let mut file = LineWriter::new(File::create(path)?);
    Ok(Log::new(Box::new(move |line| {
        // A full disk must not stop the computation.
        let _ = writeln!(file, "{line}");
    })))
}
