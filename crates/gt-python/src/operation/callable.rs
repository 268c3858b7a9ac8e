//! Python functions and method descriptors of operations.
//!
//! Python calls a C function without saying which object it was reached by, so there is one C
//! function for each operation and form, all made from one generic function.

use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};

use gt::ir::Operation;
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;

use super::document::document;
use super::{Form, Given};
use crate::tensor::PyTensor;

type Entry = unsafe extern "C" fn(
    *mut ffi::PyObject,
    *const *mut ffi::PyObject,
    ffi::Py_ssize_t,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;

const ROWS: usize = 32;

/// Sixteen C functions, of the operations with ids from `$row * 16` on.
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

/// The C functions by form, then by the operation's id.
static ENTRIES: [[[Entry; 16]; ROWS]; 3] = [all_rows!(0), all_rows!(1), all_rows!(2)];

fn entry_of(operation: &Operation, form: Form) -> Entry {
    let id = usize::from(operation.id);
    ENTRIES[form as usize][id / 16][id % 16]
}

/// What Python calls: the operation with an id, in a form.
///
/// # Safety
/// Called by Python alone, by the protocol of `METH_FASTCALL | METH_KEYWORDS`.
unsafe extern "C" fn entry<const ID: u16, const FORM: u8>(
    this: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let form = const { [Form::Function, Form::Method, Form::InPlace][FORM as usize] };
    // SAFETY: Python's call is passed on as it is.
    unsafe { enter(this, arguments, count, names, (ID, form)) }
}

/// What all entries do. Compiled once, as there are hundreds of them.
///
/// # Safety
/// As for [`entry`].
unsafe fn enter(
    this: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
    (id, form): (u16, Form),
) -> *mut ffi::PyObject {
    Python::attach(|py| {
        let run = || {
            // SAFETY: Python's protocol: `count` positional arguments, then one for each name;
            // `this` is the tensor of a method; all are borrowed for the call.
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
    })
}

/// # Safety
/// As for [`entry`].
unsafe fn run<'py>(
    py: Python<'py>,
    id: u16,
    form: Form,
    this: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: usize,
    names: *mut ffi::PyObject,
) -> PyResult<Bound<'py, PyAny>> {
    let operation = Operation::from_id(id).expect("made for operations that exist");
    let mut positional: SmallVec<[Bound<'py, PyAny>; 6]> = SmallVec::new();
    if form != Form::Function {
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
    super::call(py, operation, form, &Given { positional: &positional, named: &named })
}

/// The description of a C function; it lives as long as the process, as Python requires.
fn definition(
    operation: &'static Operation,
    name: &str,
    form: Form,
) -> PyResult<*mut ffi::PyMethodDef> {
    let documentation = CString::new(document(operation, name, form))?;
    let definition = ffi::PyMethodDef {
        ml_name: CString::new(name)?.into_raw(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: entry_of(operation, form) },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: documentation.into_raw(),
    };
    Ok(Box::into_raw(Box::new(definition)))
}

/// The function of an operation.
pub fn function<'py>(
    py: Python<'py>,
    operation: &'static Operation,
) -> PyResult<Bound<'py, PyAny>> {
    let definition = definition(operation, operation.name, Form::Function)?;
    // SAFETY: the definition is valid and is never freed; a function needs no object to be bound to.
    unsafe {
        let function =
            ffi::PyCFunction_NewEx(definition, std::ptr::null_mut(), std::ptr::null_mut());
        Bound::from_owned_ptr_or_err(py, function)
    }
}

/// The method of an operation, for the class `Tensor`.
pub fn method<'py>(
    py: Python<'py>,
    operation: &'static Operation,
    name: &str,
    form: Form,
) -> PyResult<Bound<'py, PyAny>> {
    let definition = definition(operation, name, form)?;
    let class = py.get_type::<PyTensor>();
    // SAFETY: the definition is valid and is never freed; Python checks that a method is called on
    // an object of this class.
    unsafe {
        let method = ffi::PyDescr_NewMethod(class.as_type_ptr(), definition);
        Bound::from_owned_ptr_or_err(py, method)
    }
}
