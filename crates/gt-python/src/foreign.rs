//! Classes of NumPy's and PyTorch's, which are imported only if the program has done so.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

/// Returns a class of PyTorch's; `None` as long as nothing imported PyTorch.
pub fn torch_class<'py>(py: Python<'py>, name: &str) -> Option<Bound<'py, PyType>> {
    class_of(py, "torch", name)
}

/// Returns a class of a module; `None` as long as nothing imported the module.
fn class_of<'py>(py: Python<'py>, module: &str, name: &str) -> Option<Bound<'py, PyType>> {
    // SAFETY: the GIL is held, and the interpreter has its dict of modules, which is borrowed.
    let modules = unsafe { Bound::from_borrowed_ptr(py, ffi::PyImport_GetModuleDict()) };
    modules.cast::<PyDict>().ok()?.get_item(module).ok()??.getattr(name).ok()?.cast_into().ok()
}

/// Whether a class is that of NumPy's arrays or of PyTorch's tensors, or a subclass. They have
/// methods of the same names as GT's tensors, so that a function might return one of their kind.
pub fn is_foreign(kind: &Bound<'_, PyType>) -> bool {
    let py = kind.py();
    [("numpy", "ndarray"), ("torch", "Tensor")].into_iter().any(|(module, name)| {
        class_of(py, module, name).is_some_and(|class| kind.is_subclass(&class).unwrap_or(false))
    })
}

/// Returns whether a value is an array of NumPy's or a tensor of PyTorch's.
#[pyfunction]
#[pyo3(name = "is_foreign")]
fn is_foreign_value(value: &Bound<'_, PyAny>) -> bool {
    is_foreign(&value.get_type())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(is_foreign_value, module)?)
}
