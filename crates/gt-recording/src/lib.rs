//! Recordings: a session's stream in a file, from its start, and its replay anywhere.
//!
//! Recording:
//! - [`start`]: begins a recording, as the environment asks for it; [`driver`]: the driver that records
//!   what passes between a session and its dispatcher; [`writer`]: the thread that writes; [`forks`]:
//!   forks of the process, which record nothing.
//! - [`format`]: the entries of the file; [`event`]: what a session did; [`outcome`]: what it received;
//!   [`place`]: where it was computed; [`content`]: hashes of values; [`substitute`]: what is recorded
//!   otherwise than it is submitted; [`anonymous`]: what stands for data and names that are left out.
//!
//! Replaying:
//! - [`reading`]: reads and checks a file; [`error`]: why it is refused; [`numbering`]: the numbers of
//!   instructions.
//! - [`replay`]: runs the stream again, compares, and finds the first instruction that differs.
//! - [`script`]: writes the stream as a program of Python.
//!
//! It knows sessions by the interface of their drivers alone ([`gt_client::Driver`]): neither engines
//! nor links.

mod anonymous;
pub mod content;
mod driver;
mod error;
pub mod event;
mod forks;
pub mod format;
mod numbering;
pub mod outcome;
mod place;
mod published;
pub mod reading;
pub mod replay;
pub mod script;
mod start;
mod substitute;
mod writer;

pub use error::RecordingError;
pub use place::RecordedPlace;
pub use reading::{Ending, Recording};
pub use start::{is_asked, record, record_if_asked};
pub use substitute::{CommandSubstitution, ReadStored};
