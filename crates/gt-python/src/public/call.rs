//! Calls of public functions: the function of an object, its arguments, and what follows an error.

use std::ffi::{CStr, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::OnceLock;

use gt::autocast::autocast;
use pyo3::exceptions::{
    PyAttributeError, PyException, PyRuntimeError, PyStopIteration, PySystemError, PyTypeError,
};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::type_object::PyTypeInfo;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};

use super::present::{ShownName, present};
use super::result::{Make, public_result};
use crate::dtype::PyDType;
use crate::foreign;
use crate::source;
use crate::tensor::PyTensor;

/// A function of Python's vectorcall protocol.
pub type Vectorcall = unsafe extern "C" fn(
    *mut ffi::PyObject,
    *const *mut ffi::PyObject,
    usize,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;

/// The arguments of a call.
type Packed<'py> = PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)>;

/// The object. Its fields are set once, and all of them but `attributes` never change.
#[repr(C)]
pub struct PublicFunction {
    base: ffi::PyObject,
    pub vectorcall: Vectorcall,
    /// The Python function.
    pub function: *mut ffi::PyObject,
    /// What is called instead under autocast, or null.
    pub under_autocast: *mut ffi::PyObject,
    /// What is called after an error, or instead of the function if `converts` says so: with the
    /// positional arguments, the named ones, the error or None, and whether the user's code has
    /// made the call. It returns the result or raises. Null if there is none.
    pub recover: *mut ffi::PyObject,
    /// The object's `__dict__`.
    pub attributes: *mut ffi::PyObject,
    /// The weak references to the object.
    pub weak_references: *mut ffi::PyObject,
    /// Whether `recover` is called instead of the function if an argument is foreign.
    pub converts: bool,
    /// Whether errors name the function.
    pub shown: ShownName,
    /// Makes a public function of one that the function returns.
    pub make: Make,
}

/// `PyObject_Vectorcall`, which CPython 3.10 does not export.
pub fn object_vectorcall() -> Option<Vectorcall> {
    static FOUND: OnceLock<Option<Vectorcall>> = OnceLock::new();
    // SAFETY: CPython's function of this name has this type in all versions that export it; a null
    // pointer is `None`.
    *FOUND.get_or_init(|| unsafe {
        std::mem::transmute::<*mut c_void, Option<Vectorcall>>(symbol(c"PyObject_Vectorcall"))
    })
}

/// Returns a function of CPython's that is not in the stable ABI of all versions; null if this one
/// does not export it.
pub fn symbol(name: &CStr) -> *mut c_void {
    // SAFETY: the name is null-terminated; the process and its libraries are searched.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// Calls the function of a public function: the vectorcall protocol's entry.
///
/// # Safety
/// Called by Python alone, for objects of the type of [`PublicFunction`].
pub unsafe extern "C" fn call_vector(
    this: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: usize,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: `this` is a public function, which Python keeps alive during the call; its functions
    // are called with Python's arguments, unchanged. By the protocol there are as many as `given`.
    unsafe {
        let this = &*this.cast::<PublicFunction>();
        if this.converts && !this.recover.is_null() {
            let of_names = if names.is_null() { 0 } else { ffi::PyTuple_Size(names) as usize };
            let given = (count & (usize::MAX >> 1)) + of_names;
            if (0..given).any(|index| is_foreign(*arguments.add(index))) {
                let run = || this.recover(None, |py| packed(py, arguments, count, names));
                return this.guarded(run);
            }
        }
        let result = match object_vectorcall() {
            Some(vectorcall) => vectorcall(this.chosen(), arguments, count, names),
            None => this.call_packed(arguments, count, names),
        };
        if result.is_null() {
            return this.fail(|py| packed(py, arguments, count, names));
        }
        if this.shown.is_some() { result } else { public_result(result, this.make) }
    }
}

/// Returns the arguments of a vectorcall as a tuple and a dict.
///
/// # Safety
/// The arguments are those of a call by the vectorcall protocol.
unsafe fn packed<'py>(
    py: Python<'py>,
    arguments: *const *mut ffi::PyObject,
    count: usize,
    names: *mut ffi::PyObject,
) -> Packed<'py> {
    // SAFETY: by the protocol there are this many positional arguments, then one for each name.
    let argument = |index| unsafe { Bound::from_borrowed_ptr(py, *arguments.add(index)) };
    // The highest bit says that the caller owns the place before the first argument.
    let count = count & (usize::MAX >> 1);
    let args = PyTuple::new(py, (0..count).map(argument))?;
    let kwargs = PyDict::new(py);
    // SAFETY: by the protocol `names` is a tuple of strings or null.
    if let Some(names) = unsafe { Bound::from_borrowed_ptr_or_opt(py, names) } {
        for (index, name) in names.cast_into::<PyTuple>()?.iter().enumerate() {
            kwargs.set_item(name, argument(count + index))?;
        }
    }
    Ok((args, kwargs))
}

impl PublicFunction {
    /// Returns the function to call now.
    fn chosen(&self) -> *mut ffi::PyObject {
        let autocast = !self.under_autocast.is_null() && autocast().is_some();
        if autocast { self.under_autocast } else { self.function }
    }

    /// Calls the function with a tuple and a dict of the arguments.
    ///
    /// # Safety
    /// Python holds the GIL; the arguments are those of a call by the vectorcall protocol.
    unsafe fn call_packed(
        &self,
        arguments: *const *mut ffi::PyObject,
        count: usize,
        names: *mut ffi::PyObject,
    ) -> *mut ffi::PyObject {
        // SAFETY: as for this function.
        let py = unsafe { Python::assume_attached() };
        // SAFETY: as for this function.
        match unsafe { packed(py, arguments, count, names) } {
            // SAFETY: the function is an object, and these are a tuple and a dict.
            Ok((args, kwargs)) => unsafe {
                ffi::PyObject_Call(self.chosen(), args.as_ptr(), kwargs.as_ptr())
            },
            Err(error) => {
                error.restore(py);
                ptr::null_mut()
            }
        }
    }

    /// Handles the error that is set: returns the result that `recover` finds, or null with the
    /// error as the user sees it.
    ///
    /// # Safety
    /// Python holds the GIL, and an error is set.
    unsafe fn fail<'py>(
        &self,
        arguments: impl FnOnce(Python<'py>) -> Packed<'py>,
    ) -> *mut ffi::PyObject {
        let run = || {
            // SAFETY: as for this function.
            let py = unsafe { Python::assume_attached() };
            // A panic in Rust, which Python passed on as an error, continues here.
            let error = PyErr::take(py).expect("a call without a result sets an error");
            // SAFETY: as for this function.
            unsafe { self.recover(Some(error), arguments) }
        };
        // SAFETY: as for this function.
        unsafe { self.guarded(run) }
    }

    /// Runs what may panic; a panic becomes an error with its text.
    ///
    /// # Safety
    /// Python holds the GIL.
    unsafe fn guarded(&self, run: impl FnOnce() -> *mut ffi::PyObject) -> *mut ffi::PyObject {
        // PyO3 releases objects at once only while it knows that the GIL is held. At shutdown, when
        // finalizers run, it refuses to say so.
        let mut run = Some(run);
        let mut once = || run.take().map_or(ptr::null_mut(), |run| run());
        let attached = || Python::try_attach(|_| once()).unwrap_or_else(&mut once);
        catch_unwind(AssertUnwindSafe(attached)).unwrap_or_else(|panic| {
            // SAFETY: as for this function.
            let py = unsafe { Python::assume_attached() };
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text");
            let text = format!("GT panicked, please report this with the call: {text}");
            PyRuntimeError::new_err(text).restore(py);
            ptr::null_mut()
        })
    }

    /// Handles an error, or the arguments if there is none: returns the result that `recover` finds,
    /// or null with an error as the user sees it.
    ///
    /// # Safety
    /// Python holds the GIL, and no error is set.
    unsafe fn recover<'py>(
        &self,
        error: Option<PyErr>,
        arguments: impl FnOnce(Python<'py>) -> Packed<'py>,
    ) -> *mut ffi::PyObject {
        // SAFETY: as for this function.
        let py = unsafe { Python::assume_attached() };
        // SAFETY: null or a Python object that `self` owns.
        let recover = unsafe { Bound::from_borrowed_ptr_or_opt(py, self.recover) };
        // A function that the user has not called leaves the explanation to the one that he has.
        let is_users = !source::is_called_by_gt(py);
        let explains = self.shown.is_some() || self.converts || is_users;
        // The name of what is no operation is known in Python.
        let names = self.shown.is_none() && is_users;
        let may_recover = error.as_ref().is_none_or(|error| {
            explains && is_of_arguments(py, error) || names && is_of_call(py, error)
        });
        let result = match (recover, error) {
            (Some(recover), error) if may_recover => arguments(py).and_then(|(args, kwargs)| {
                // With its traceback.
                let own = error.as_ref().map(|error| error.clone_ref(py).into_value(py));
                let own = own.map(|own| own.into_bound(py));
                let result = recover.call1((args, kwargs, own.clone(), is_users))?;
                match error {
                    // Returned unchanged: it is raised as it was, with its context.
                    Some(error) if own.is_some_and(|own| result.is(&own)) => Err(error),
                    _ => Ok(result),
                }
            }),
            (_, Some(error)) => Err(error),
            (_, None) => Err(PySystemError::new_err("a call failed without an error")),
        };
        match result {
            Ok(result) => result.into_ptr(),
            Err(error) => {
                present(py, error, &self.shown, is_users).restore(py);
                ptr::null_mut()
            }
        }
    }
}

/// Whether an argument is an array of NumPy's or a tensor of PyTorch's, or a list that has one.
///
/// # Safety
/// Python holds the GIL; the argument is an object.
unsafe fn is_foreign(argument: *mut ffi::PyObject) -> bool {
    // SAFETY: as for this function.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: the argument is an object.
    let kind = unsafe { ffi::Py_TYPE(argument) };
    if kind == PyList::type_object_raw(py) {
        // SAFETY: the argument is a list, which does not change during the loop.
        return unsafe {
            (0..ffi::PyList_Size(argument))
                .any(|index| is_foreign_item(py, ffi::PyList_GetItem(argument, index)))
        };
    }
    if kind == PyTuple::type_object_raw(py) {
        // SAFETY: the argument is a tuple.
        return unsafe {
            (0..ffi::PyTuple_Size(argument))
                .any(|index| is_foreign_item(py, ffi::PyTuple_GetItem(argument, index)))
        };
    }
    // SAFETY: the argument is an object.
    unsafe { is_foreign_item(py, argument) }
}

/// Whether an argument, or an item of a list, is an array of NumPy's or a tensor of PyTorch's.
///
/// # Safety
/// The item is an object.
unsafe fn is_foreign_item(py: Python<'_>, argument: *mut ffi::PyObject) -> bool {
    // SAFETY: the argument is an object.
    let kind = unsafe { ffi::Py_TYPE(argument) };
    let tensor = PyTensor::type_object_raw(py);
    let plain = [
        tensor,
        PyInt::type_object_raw(py),
        PyFloat::type_object_raw(py),
        PyList::type_object_raw(py),
        PyTuple::type_object_raw(py),
        PyString::type_object_raw(py),
        PyBool::type_object_raw(py),
        PyDType::type_object_raw(py),
    ];
    // SAFETY: the argument and the types are objects. Parameters are a subclass of tensors; modules
    // and most other objects have no operator `@`, unlike arrays.
    let is_other = |kind| unsafe {
        ffi::Py_IsNone(argument) != 0
            || ffi::PyType_IsSubtype(kind, tensor) != 0
            || ffi::PyType_GetSlot(kind, ffi::Py_nb_matrix_multiply).is_null()
    };
    if plain.contains(&kind) || is_other(kind) {
        return false;
    }
    // SAFETY: the type of an object is a type.
    let kind = unsafe { Bound::from_borrowed_ptr(py, kind.cast::<ffi::PyObject>()) };
    kind.cast::<PyType>().is_ok_and(foreign::is_foreign)
}

/// Whether an error is one, and not the end of an iteration or of the program.
fn is_of_call(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyException>(py) && !error.is_instance_of::<PyStopIteration>(py)
}

/// Whether wrong arguments may have caused an error.
fn is_of_arguments(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyTypeError>(py) || error.is_instance_of::<PyAttributeError>(py)
}
