//! Finding the dispatcher to watch.

use std::path::PathBuf;

use gt::drivers::watch::Watcher;
use gt_net::registry::{Found, running};

use crate::error::ToolError;

/// Which dispatcher to watch.
#[derive(Clone, Debug, Default)]
pub struct WatchTarget {
    /// A server's address; without it, a dispatcher on this machine is found.
    pub address: Option<String>,
    /// The process of an embedded session.
    pub process: Option<u32>,
    pub key_file: Option<PathBuf>,
    pub insecure: bool,
}

impl WatchTarget {
    /// Watches the named dispatcher, or the only one on this machine.
    ///
    /// # Errors
    /// No dispatcher or several are found, or it cannot be reached.
    pub fn watch(&self) -> Result<Watcher, ToolError> {
        if let Some(address) = &self.address {
            return Ok(Watcher::connect(address, self.key_file.as_deref(), self.insecure)?);
        }
        let found = self.choose(running()?)?;
        Ok(Watcher::attach(&found, self.key_file.as_deref(), self.insecure)?)
    }

    /// Returns the address of the only server on this machine, or of the one that is named.
    ///
    /// # Errors
    /// There is none, or several; or it is a program that runs its own workers.
    pub fn server(&self) -> Result<String, ToolError> {
        if let Some(address) = &self.address {
            return Ok(address.clone());
        }
        match self.choose(running()?)? {
            Found::Server { address, .. } => Ok(address),
            Found::Embedded { process, .. } => Err(ToolError::BadOption(format!(
                "process {process} runs its own workers: its sessions end with it\n  hint: name a server, as --port 9000"
            ))),
        }
    }

    fn choose(&self, found: Vec<Found>) -> Result<Found, ToolError> {
        if let Some(wanted) = self.process {
            let is_wanted = |found: &&Found| match found {
                Found::Embedded { process, .. } | Found::Server { process, .. } => {
                    *process == wanted
                }
            };
            return found.iter().find(is_wanted).cloned().ok_or_else(|| {
                let list = if found.is_empty() {
                    "; nor does any other".to_string()
                } else {
                    format!("; there are:\n{}", describe(&found).trim_end())
                };
                ToolError::NoSuchProcess { process: wanted, list }
            });
        }
        match found.as_slice() {
            [] => Err(ToolError::NobodyHere),
            [only] => Ok(only.clone()),
            several => Err(ToolError::Several { list: describe(several) }),
        }
    }
}

/// A line for each dispatcher.
pub fn describe(found: &[Found]) -> String {
    let line = |found: &Found| match found {
        Found::Server { address, process } => {
            format!("  server at {address} (process {process})\n")
        }
        Found::Embedded { process, .. } => format!("  a program, process {process}\n"),
    };
    found.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(port: u16) -> Found {
        Found::Server { address: format!("localhost:{port}"), process: 7 }
    }

    #[test]
    fn the_only_one_is_meant_and_of_several_the_user_chooses() {
        let target = WatchTarget::default();
        assert_eq!(target.choose(vec![server(9000)]).unwrap(), server(9000));
        assert!(matches!(target.choose(vec![]), Err(ToolError::NobodyHere)));
        let program = Found::Embedded { process: 8, socket: PathBuf::new() };
        let several = vec![server(9000), program.clone()];
        let error = target.choose(several.clone()).unwrap_err().to_string();
        assert!(error.contains("localhost:9000") && error.contains("process 8"), "{error}");
        let target = WatchTarget { process: Some(8), ..WatchTarget::default() };
        assert_eq!(target.choose(several.clone()).unwrap(), program);
        let target = WatchTarget { process: Some(9), ..WatchTarget::default() };
        let error = target.choose(several).unwrap_err().to_string();
        assert!(error.contains("process 9") && error.contains("localhost:9000"), "{error}");
    }
}
