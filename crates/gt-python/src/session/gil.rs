//! The GIL in callbacks from PyTorch.

use pyo3::ffi;
use pyo3::prelude::*;

/// Runs a function with the GIL. PyTorch releases the GIL around operators, also in functions that
/// were called from Python through PyO3, so PyO3's own record of whether this thread holds it can
/// be wrong; CPython is asked instead.
pub fn with_gil<T>(function: impl FnOnce(Python<'_>) -> T) -> T {
    struct Release(ffi::PyGILState_STATE);
    impl Drop for Release {
        fn drop(&mut self) {
            // SAFETY: `PyGILState_Ensure` returned this state to this thread.
            unsafe { ffi::PyGILState_Release(self.0) };
        }
    }
    // SAFETY: the interpreter runs for as long as PyTorch's operators do; the GIL is held until the
    // state is released, after the function.
    unsafe {
        let _release = Release(ffi::PyGILState_Ensure());
        function(Python::assume_attached())
    }
}
