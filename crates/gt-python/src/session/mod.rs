//! Sessions: which one a thread uses, and how to wait for one.
//!
//! - [`handle`]: a session that is open in this process, until it is closed.
//! - [`current`]: the sessions of threads and of the process, and which one counts.
//! - [`default`]: the functions that change those outside of `with` blocks.
//! - [`object`]: the Python object for a session, and `with` blocks.
//! - [`wait`]: waiting, and making room before an instruction.
//! - [`fork`]: what happens around a fork; [`exit`]: at the end of the process.
//! - [`lock`]: Python's lock, where PyTorch calls.

mod current;
mod default;
pub mod exit;
pub mod fork;
mod gil;
mod handle;
mod object;
mod wait;

use pyo3::prelude::*;

pub use current::{current, note, within};
pub use fork::ForkBlocker;
pub use gil::with_gil;
pub use object::PySession;
pub use wait::{at_exit, ready, ready_current, ready_session, waiting};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    default::register(module)?;
    object::register(module)?;
    exit::register(module)?;
    fork::register(module)
}
