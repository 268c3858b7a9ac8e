//! Sessions: selecting, opening, closing and waiting for them.
//!
//! - [`handle`]: handles of the sessions that are open in this process.
//! - [`current`]: the sessions of threads and of the process, and which one a thread uses.
//! - [`attach`]: sessions that outlive their program; [`publishing`]: tensors for other programs.
//! - [`default`]: the functions that select and configure a session outside of `with` blocks.
//! - [`object`]: the Python object of a session, and `with` blocks; [`origin`]: its name;
//!   [`address`]: addresses and key files.
//! - [`wait`]: waiting without the GIL, and for room in a session's window.
//! - [`fork`]: forks of the process; [`exit`]: process exit; [`gil`]: the GIL in callbacks from
//!   PyTorch.

mod address;
mod attach;
mod current;
mod default;
pub mod exit;
pub mod fork;
mod gil;
mod handle;
mod object;
mod origin;
pub mod publishing;
mod wait;

use pyo3::prelude::*;

pub use current::{current, within};
pub use fork::ForkBlocker;
pub use gil::with_gil;
pub use handle::{answer_held, list_held_by};
pub use object::PySession;
pub use wait::{at_exit, ready, ready_current, ready_session, waiting};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    attach::register(module)?;
    default::register(module)?;
    object::register(module)?;
    exit::register(module)?;
    publishing::register(module)?;
    fork::register(module)
}
