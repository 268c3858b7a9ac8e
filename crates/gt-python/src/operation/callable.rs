//! Python functions and method descriptors of operations.
//!
//! A C function called by Python does not learn through which object it was called. Therefore each
//! operation and call form has a C function of its own, an instance of one generic function.

use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use gt::autocast::autocast;
use gt::ir::{Operation, ops};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;

use super::document::document;
use super::{CallArguments, CallForm};
use crate::tensor::PyTensor;

type CFunction = unsafe extern "C" fn(
    *mut ffi::PyObject,
    *const *mut ffi::PyObject,
    ffi::Py_ssize_t,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;

const ROWS: usize = 32;

/// Sixteen C functions, for the operations with the ids `$row * 16` to `$row * 16 + 15`.
macro_rules! row {
    ($form:literal, $row:literal) => {
        [
            entry::<{ $row * 16 }, $form>,
            entry::<{ $row * 16 + 1 }, $form>,
            entry::<{ $row * 16 + 2 }, $form>,
            entry::<{ $row * 16 + 3 }, $form>,
            entry::<{ $row * 16 + 4 }, $form>,
            entry::<{ $row * 16 + 5 }, $form>,
            entry::<{ $row * 16 + 6 }, $form>,
            entry::<{ $row * 16 + 7 }, $form>,
            entry::<{ $row * 16 + 8 }, $form>,
            entry::<{ $row * 16 + 9 }, $form>,
            entry::<{ $row * 16 + 10 }, $form>,
            entry::<{ $row * 16 + 11 }, $form>,
            entry::<{ $row * 16 + 12 }, $form>,
            entry::<{ $row * 16 + 13 }, $form>,
            entry::<{ $row * 16 + 14 }, $form>,
            entry::<{ $row * 16 + 15 }, $form>,
        ]
    };
}

macro_rules! table {
    ($form:literal; $($row:literal)*) => { [$(row!($form, $row)),*] };
}

macro_rules! all_rows {
    ($form:literal) => {
        table!($form; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15
               16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31)
    };
}

/// The C functions by call form, then by the operation's id.
static ENTRIES: [[[CFunction; 16]; ROWS]; 4] =
    [all_rows!(0), all_rows!(1), all_rows!(2), all_rows!(3)];

fn entry_of(operation: &Operation, form: CallForm) -> CFunction {
    let id = usize::from(operation.id);
    ENTRIES[form as usize][id / 16][id % 16]
}

/// The C function for one operation and call form.
///
/// # Safety
/// Called by Python alone, by the protocol of `METH_FASTCALL | METH_KEYWORDS`.
unsafe extern "C" fn entry<const ID: u16, const FORM: u8>(
    this: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let form = const {
        [CallForm::Function, CallForm::Method, CallForm::InPlace, CallForm::Direct][FORM as usize]
    };
    // SAFETY: Python's arguments are forwarded unchanged.
    unsafe { enter(this, arguments, count, names, (ID, form)) }
}

/// The common body of all instances of [`entry`]. Not generic, so that it is compiled once.
///
/// # Safety
/// As for [`entry`].
unsafe fn enter(
    this: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
    (id, form): (u16, CallForm),
) -> *mut ffi::PyObject {
    let call = |py: Python<'_>| {
        let run = || {
            // SAFETY: by Python's calling convention there are `count` positional arguments, then
            // one for each name; `this` is the tensor of a method; all are borrowed for the call.
            unsafe { run(py, id, form, this, arguments, count as usize, names) }
        };
        let result = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
            Err(PyRuntimeError::new_err("an operation panicked; please report this with its call"))
        });
        match result {
            Ok(result) => result.into_ptr(),
            Err(error) => {
                error.restore(py);
                std::ptr::null_mut()
            }
        }
    };
    Python::try_attach(call).unwrap_or_else(|| {
        // The interpreter is shutting down and runs finalizers.
        // SAFETY: Python holds the GIL during this call, also at shutdown.
        call(unsafe { Python::assume_attached() })
    })
}

/// # Safety
/// As for [`entry`].
unsafe fn run<'py>(
    py: Python<'py>,
    id: u16,
    form: CallForm,
    this: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: usize,
    names: *mut ffi::PyObject,
) -> PyResult<Bound<'py, PyAny>> {
    let operation = Operation::from_id(id).expect("made for operations that exist");
    let mut positional: SmallVec<[Bound<'py, PyAny>; 6]> = SmallVec::new();
    if form != CallForm::Function {
        // SAFETY: see `entry`.
        positional.push(unsafe { Bound::from_borrowed_ptr(py, this) });
    }
    for index in 0..count {
        // SAFETY: see `entry`: there are `count` of them.
        positional.push(unsafe { Bound::from_borrowed_ptr(py, *arguments.add(index)) });
    }
    let mut named: SmallVec<[(String, Bound<'py, PyAny>); 2]> = SmallVec::new();
    if !names.is_null() {
        // SAFETY: see `entry`: a tuple of strings.
        let names = unsafe { Bound::from_borrowed_ptr(py, names) }.cast_into::<PyTuple>()?;
        for (index, name) in names.iter().enumerate() {
            // SAFETY: see `entry`: the arguments by name follow the positional ones.
            let value = unsafe { Bound::from_borrowed_ptr(py, *arguments.add(count + index)) };
            named.push((name.extract()?, value));
        }
    }
    let given = CallArguments { positional: &positional, named: &named };
    match form {
        CallForm::Direct => direct(py, operation, &given),
        form => super::call(py, operation, form, &given),
    }
}

/// The composites that share a primitive's name, by its id. They handle the arguments that the
/// primitive does not take, and raise the errors for wrong arguments.
static COMPOSITES: [OnceLock<Py<PyAny>>; 16 * ROWS] = [const { OnceLock::new() }; 16 * ROWS];

/// Calls a primitive, or its composite if the primitive does not accept the arguments.
fn direct<'py>(
    py: Python<'py>,
    operation: &'static Operation,
    given: &CallArguments<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    // Under autocast the composite chooses the dtypes of the operations that it consists of.
    if autocast().is_none() {
        match super::call(py, operation, CallForm::Method, given) {
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {}
            result => return result,
        }
    }
    let composite = COMPOSITES[usize::from(operation.id)].get().expect("set with its method");
    let named = PyDict::new(py);
    for (name, value) in given.named {
        named.set_item(name, value)?;
    }
    composite.bind(py).call(PyTuple::new(py, given.positional)?, Some(&named))
}

/// Return the method of a composite that extends the primitive of the same name. A call goes to the
/// primitive directly, and to `composite` if the primitive does not accept the arguments.
///
/// Args:
///     name: the name of the primitive.
///     text: the docstring of the method.
#[pyfunction]
pub fn direct_method<'py>(
    py: Python<'py>,
    name: &str,
    composite: Py<PyAny>,
    text: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let operation = ops::ALL.iter().copied().find(|operation| operation.name == name);
    let operation = operation
        .ok_or_else(|| PyRuntimeError::new_err(format!("there is no primitive '{name}'")))?;
    let _ = COMPOSITES[usize::from(operation.id)].set(composite);
    describe(py, definition(operation, name, CallForm::Direct, text)?)
}

/// Returns the method definition of a C function. It is leaked, as Python requires it to live as
/// long as the process.
fn definition(
    operation: &'static Operation,
    name: &str,
    form: CallForm,
    text: &str,
) -> PyResult<*mut ffi::PyMethodDef> {
    let documentation = CString::new(text)?;
    let definition = ffi::PyMethodDef {
        ml_name: CString::new(name)?.into_raw(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: entry_of(operation, form) },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: documentation.into_raw(),
    };
    Ok(Box::into_raw(Box::new(definition)))
}

/// Returns the Python function of an operation.
pub fn function<'py>(
    py: Python<'py>,
    operation: &'static Operation,
) -> PyResult<Bound<'py, PyAny>> {
    let text = document(operation, operation.name, CallForm::Function);
    let definition = definition(operation, operation.name, CallForm::Function, &text)?;
    // SAFETY: the definition is valid and is never freed; a function needs no object to be bound
    // to.
    unsafe {
        let function =
            ffi::PyCFunction_NewEx(definition, std::ptr::null_mut(), std::ptr::null_mut());
        Bound::from_owned_ptr_or_err(py, function)
    }
}

/// Returns the method of an operation, for the class `Tensor`.
pub fn method<'py>(
    py: Python<'py>,
    operation: &'static Operation,
    name: &str,
    form: CallForm,
) -> PyResult<Bound<'py, PyAny>> {
    let text = document(operation, name, form);
    describe(py, definition(operation, name, form, &text)?)
}

/// Returns a method descriptor of the class `Tensor`.
fn describe(py: Python<'_>, definition: *mut ffi::PyMethodDef) -> PyResult<Bound<'_, PyAny>> {
    let class = py.get_type::<PyTensor>();
    // SAFETY: the definition is valid and is never freed; Python checks that a method is called on
    // an object of this class.
    unsafe {
        let method = ffi::PyDescr_NewMethod(class.as_type_ptr(), definition);
        Bound::from_owned_ptr_or_err(py, method)
    }
}
