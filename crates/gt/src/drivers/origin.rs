//! The program of this process, as its sessions name it.

use gt_ir::SessionOrigin;

use super::system;

/// Returns the origin of this process's sessions. Without a name of the program it has the name of
/// the file that runs.
pub fn origin(program: Option<String>) -> SessionOrigin {
    let file = || {
        let file = std::env::args_os().next()?;
        let file = std::path::Path::new(&file).file_name()?;
        Some(file.to_string_lossy().into_owned())
    };
    let program = program.or_else(file).unwrap_or_default();
    SessionOrigin { program, user: system::user(), host: system::host() }.cleaned()
}
