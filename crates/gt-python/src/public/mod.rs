//! Public functions: what users call of GT's Python code. An error that leaves one shows the user's
//! lines and none of GT's own, and names the operation that the user called.
//!
//! - [`kind`]: the Python type of public functions.
//! - [`present`]: how an error is shown.

mod kind;
mod present;

pub use kind::register;
