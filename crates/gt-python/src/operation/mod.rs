//! Operations as Python functions and methods of `Tensor`, generated from their declarations.
//!
//! - [`arguments`]: a call's arguments as the operands and attributes of an instruction.
//! - [`callable`]: the C functions, and the Python functions and method descriptors over them.
//! - [`document`]: signatures and docstrings.

mod arguments;
mod callable;
mod document;

use gt::Tensor;
use gt::ir::operation::face;
use gt::ir::{Operation, ops};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;

use crate::error::IntoPython;
use crate::tensor::PyTensor;
use crate::{session, source};
use arguments::BoundArguments;

/// The form in which an operation is called.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum CallForm {
    Function,
    Method,
    InPlace,
    /// A composite's method that tries the primitive of the same name first.
    Direct,
}

/// The positional arguments of a call, and the names and values of its keyword arguments.
pub struct CallArguments<'a, 'py> {
    pub positional: &'a [Bound<'py, PyAny>],
    pub named: &'a [(String, Bound<'py, PyAny>)],
}

/// Issues an operation and returns its result. In place, the first argument is assigned the result
/// and returned.
fn call<'py>(
    py: Python<'py>,
    operation: &'static Operation,
    form: CallForm,
    given: &CallArguments<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    source::note(py);
    let arguments = BoundArguments::bind(operation, form, given)?;
    let session = match arguments.first_tensor() {
        Some(tensor) => session::ready_session(py, &tensor.get().0)?,
        None => session::ready_current(py)?,
    };
    let values = arguments.operands(&session)?;
    let operands: SmallVec<[_; 4]> = values.iter().map(|value| value.operand()).collect();
    let attributes = arguments.attributes()?;
    if operation.further.is_some() {
        let results = Tensor::apply_several(&session, operation, &operands, attributes).py()?;
        return Ok(PyTuple::new(py, results.into_iter().map(PyTensor))?.into_any());
    }
    let result = Tensor::apply(&session, operation, &operands, attributes).py()?;
    if form == CallForm::InPlace {
        let this = given.positional[0].cast::<PyTensor>()?;
        this.get().0.assign(&result, format_args!("{}_", operation.name)).py()?;
        return Ok(this.clone().into_any());
    }
    Ok(Bound::new(py, PyTensor(result))?.into_any())
}

/// Adds the submodule `primitives`, the methods of `Tensor`, and the table `faces`.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let primitives = PyModule::new(py, "primitives")?;
    let tensor = py.get_type::<PyTensor>();
    for operation in ops::ALL.iter().copied() {
        primitives.add(operation.name, callable::function(py, operation)?)?;
        let names = [operation.name].into_iter().chain(operation.aliases.iter().copied());
        for name in names {
            if operation.face & face::METHOD != 0 {
                tensor.setattr(name, callable::method(py, operation, name, CallForm::Method)?)?;
            }
            if operation.face & face::IN_PLACE != 0 {
                let name = format!("{name}_");
                let method = callable::method(py, operation, &name, CallForm::InPlace)?;
                tensor.setattr(name.as_str(), method)?;
            }
        }
    }
    module.add_submodule(&primitives)?;
    module.add_function(wrap_pyfunction!(callable::direct_method, module)?)?;
    module.add("faces", faces(py)?)
}

/// Returns a dict of the public primitives for each namespace, by name.
fn faces(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let namespaces = [
        ("gt", face::FUNCTION),
        ("gt.nn.functional", face::FUNCTIONAL),
        ("gt.special", face::SPECIAL),
    ];
    let dict = PyDict::new(py);
    for (namespace, bit) in namespaces {
        let functions = PyDict::new(py);
        for operation in ops::ALL.iter().copied().filter(|operation| operation.face & bit != 0) {
            let function = callable::function(py, operation)?;
            for name in [operation.name].iter().chain(operation.aliases) {
                functions.set_item(name, &function)?;
            }
        }
        dict.set_item(namespace, functions)?;
    }
    Ok(dict)
}

/// Returns the attributes of an operation from a dict of their values.
///
/// # Errors
/// An attribute is missing, or its value does not fit.
pub fn attributes(
    operation: &'static Operation,
    given: &Bound<'_, PyDict>,
) -> PyResult<gt::ir::Attributes> {
    operation
        .attributes()
        .map(|(of, _)| {
            let value = given.get_item(of.name)?;
            let value = value.ok_or_else(|| {
                let text = format!("{}: {} is missing", operation.name, of.name);
                pyo3::exceptions::PyTypeError::new_err(text)
            })?;
            arguments::attribute(operation, of, &value)
        })
        .collect()
}
