//! Where the instruction log goes: to a file, to the terminal, or nowhere.

use std::fs::File;
use std::io::{LineWriter, Write};
use std::path::{Path, PathBuf};

use gt_dispatcher::log::Log;

/// Which lines go to the terminal (stderr).
#[derive(Clone, Copy, Default)]
struct Shown {
    /// `GT_DEBUG_DISPATCHER`: all.
    all: bool,
    /// `GT_DEBUG_CLIENT`: those about clients.
    clients: bool,
    /// `GT_DEBUG_WORKER`: those about workers.
    workers: bool,
    /// `GT_VERBOSE`: who comes, who goes and what is refused.
    links: bool,
}

impl Shown {
    fn from_environment() -> Shown {
        let set = |name: &str| {
            std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0")
        };
        Shown {
            all: set("GT_DEBUG_DISPATCHER"),
            clients: set("GT_DEBUG_CLIENT"),
            workers: set("GT_DEBUG_WORKER"),
            links: set("GT_VERBOSE"),
        }
    }

    fn any(self) -> bool {
        self.all || self.clients || self.workers || self.links
    }

    fn shows(self, line: &str) -> bool {
        let field = |number| line.split(" | ").nth(number).unwrap_or_default();
        self.all
            || (self.clients && field(3).starts_with("CLIENT"))
            || (self.workers && field(3).starts_with("WORKER"))
            || (self.links && (field(4).starts_with("Link") || field(2).starts_with("ERROR")))
    }
}

/// The log that the environment asks for, if it asks for one.
pub fn log_from_environment() -> Option<Log> {
    let path = std::env::var_os("GT_INSTRUCTION_LOG").filter(|path| !path.is_empty());
    let path = path.map(PathBuf::from);
    open(path.as_deref()).unwrap_or_else(|error| {
        let path = path.unwrap_or_default();
        eprintln!("gt: GT_INSTRUCTION_LOG: cannot write to {}: {error}", path.display());
        None
    })
}

/// The log into a file, made anew, and to the terminal as the environment asks for.
pub fn log_to_file(path: &Path) -> std::io::Result<Option<Log>> {
    open(Some(path))
}

fn open(path: Option<&Path>) -> std::io::Result<Option<Log>> {
    let shown = Shown::from_environment();
    let mut file = path.map(File::create).transpose()?.map(LineWriter::new);
    if file.is_none() && !shown.any() {
        return Ok(None);
    }
    Ok(Some(Log::new(Box::new(move |line| {
        // A full disk must not stop the computation.
        if let Some(file) = &mut file {
            let _ = writeln!(file, "{line}");
        }
        if shown.any() && shown.shows(line) {
            eprintln!("{line}");
        }
    }))))
}
