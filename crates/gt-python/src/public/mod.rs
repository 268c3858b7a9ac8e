//! Public functions: what users call of GT's Python code. A call has no Python frame of its own, and
//! an error that leaves it shows the user's lines and none of GT's, and names the operation that the
//! user called.
//!
//! - [`call`]: the object of a public function, and calls of it.
//! - [`result`]: functions, generators and context managers that a public function returns.
//! - [`kind`]: its Python type.
//! - [`present`]: how an error is shown.

mod call;
mod kind;
mod present;
mod result;

pub use kind::register;
