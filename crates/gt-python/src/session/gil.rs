//! Python's lock, where it cannot be known from here whether this thread has it.

use pyo3::ffi;
use pyo3::prelude::*;

/// Runs a function with Python's lock. PyTorch lets go of it around operators, also inside
/// functions that Python has called from here: whether this thread has it, Python alone knows.
pub fn with_gil<T>(function: impl FnOnce(Python<'_>) -> T) -> T {
    struct Release(ffi::PyGILState_STATE);
    impl Drop for Release {
        fn drop(&mut self) {
            // SAFETY: the state that this thread has got from `PyGILState_Ensure`.
            unsafe { ffi::PyGILState_Release(self.0) };
        }
    }
    // SAFETY: the interpreter runs for as long as PyTorch's operators do; the lock is held until
    // the state is released, after the function.
    unsafe {
        let _release = Release(ffi::PyGILState_Ensure());
        function(Python::assume_attached())
    }
}
