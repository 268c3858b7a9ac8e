//! The Python type of public functions. It forwards a call without a Python frame of its own, so
//! that a traceback does not contain one, and binds as a method like a function.

use std::ffi::{CStr, c_int, c_uint, c_ulong, c_void};
use std::mem::offset_of;
use std::ptr;
use std::sync::OnceLock;

use gt::autocast::autocast;
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use super::present::{ShownName, present};

/// A function of Python's vectorcall protocol.
type Vectorcall = unsafe extern "C" fn(
    *mut ffi::PyObject,
    *const *mut ffi::PyObject,
    usize,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;

/// `Py_TPFLAGS_HAVE_VECTORCALL`: the flag of types whose objects have a vectorcall function. It is
/// not in the stable ABI of CPython 3.10 and 3.11, which have it.
const HAVE_VECTORCALL: c_ulong = 1 << 11;

/// The object. Its fields are set once, and all of them but `attributes` never change.
#[repr(C)]
struct PublicFunction {
    base: ffi::PyObject,
    vectorcall: Vectorcall,
    /// The Python function.
    function: *mut ffi::PyObject,
    /// What is called instead under autocast, or null.
    under_autocast: *mut ffi::PyObject,
    /// What is called with the positional arguments, the named ones and the error after a TypeError
    /// or an AttributeError; it returns the result or raises. Null if there is none.
    recover: *mut ffi::PyObject,
    /// The object's `__dict__`.
    attributes: *mut ffi::PyObject,
    /// Whether errors name the function.
    shown: ShownName,
}

/// `PyObject_Vectorcall`, which CPython 3.10 does not export.
fn object_vectorcall() -> Option<Vectorcall> {
    static FOUND: OnceLock<Option<Vectorcall>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // SAFETY: the name is null-terminated; the process and its libraries are searched. CPython's
        // function of this name has this type in all versions that export it; a null pointer is
        // `None`.
        unsafe {
            let found = libc::dlsym(libc::RTLD_DEFAULT, c"PyObject_Vectorcall".as_ptr());
            std::mem::transmute::<*mut c_void, Option<Vectorcall>>(found)
        }
    })
}

/// Calls the function of a public function: the vectorcall protocol's entry.
///
/// # Safety
/// Called by Python alone, for objects of the type of [`PublicFunction`].
unsafe extern "C" fn call_vector(
    this: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: usize,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let Some(vectorcall) = object_vectorcall() else {
        // SAFETY: as for this function.
        return unsafe { call_packed(this, arguments, count, names) };
    };
    // SAFETY: `this` is a public function, which Python keeps alive during the call; its functions
    // are called with Python's arguments, unchanged.
    unsafe {
        let this = &*this.cast::<PublicFunction>();
        let result = vectorcall(this.chosen(), arguments, count, names);
        if result.is_null() { this.fail(|py| packed(py, arguments, count, names)) } else { result }
    }
}

/// Like [`call_vector`], by a tuple and a dict of the arguments.
///
/// # Safety
/// As for [`call_vector`].
unsafe fn call_packed(
    this: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: usize,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python holds the GIL during a call.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: the arguments are Python's.
    match unsafe { packed(py, arguments, count, names) } {
        // SAFETY: as for this function.
        Ok((args, kwargs)) => unsafe { call_tuple(this, args.as_ptr(), kwargs.as_ptr()) },
        Err(error) => {
            error.restore(py);
            ptr::null_mut()
        }
    }
}

/// Calls the function of a public function: the type's `tp_call`.
///
/// # Safety
/// As for [`call_vector`].
unsafe extern "C" fn call_tuple(
    this: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as in `call_vector`; `args` is a tuple, and `kwargs` a dict or null.
    unsafe {
        let this = &*this.cast::<PublicFunction>();
        let result = ffi::PyObject_Call(this.chosen(), args, kwargs);
        if !result.is_null() {
            return result;
        }
        this.fail(|py| {
            let args = Bound::from_borrowed_ptr(py, args).cast_into::<PyTuple>()?;
            match Bound::from_borrowed_ptr_or_opt(py, kwargs) {
                Some(kwargs) => Ok((args, kwargs.cast_into::<PyDict>()?)),
                None => Ok((args, PyDict::new(py))),
            }
        })
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
) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
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

    /// Handles the error that is set: returns the result that `recover` finds, or null with the
    /// error as the user sees it.
    ///
    /// # Safety
    /// Python holds the GIL, and an error is set.
    unsafe fn fail<'py>(
        &self,
        arguments: impl FnOnce(Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)>,
    ) -> *mut ffi::PyObject {
        // SAFETY: as for this function.
        let py = unsafe { Python::assume_attached() };
        let error = PyErr::take(py).expect("a call without a result sets an error");
        // SAFETY: null or a Python object that `self` owns.
        let recover = unsafe { Bound::from_borrowed_ptr_or_opt(py, self.recover) };
        let result = match recover {
            Some(recover) if may_be_arguments(py, &error) => arguments(py)
                .and_then(|(args, kwargs)| recover.call1((args, kwargs, error.into_value(py)))),
            _ => Err(error),
        };
        match result {
            Ok(result) => result.into_ptr(),
            Err(error) => {
                present(py, error, &self.shown).restore(py);
                ptr::null_mut()
            }
        }
    }
}

/// Whether wrong arguments may have caused an error.
fn may_be_arguments(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyTypeError>(py) || error.is_instance_of::<PyAttributeError>(py)
}

/// The type's `__get__`: a bound method where it is read from an instance.
///
/// # Safety
/// As for [`call_vector`]; `instance` is an object or null.
unsafe extern "C" fn bind(
    this: *mut ffi::PyObject,
    instance: *mut ffi::PyObject,
    _class: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python holds the GIL during a call.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: `this` is an object.
    let this = unsafe { Bound::from_borrowed_ptr(py, this) };
    // SAFETY: an object or null.
    let bound = match unsafe { Bound::from_borrowed_ptr_or_opt(py, instance) } {
        None => Ok(this),
        Some(instance) => method_type(py).and_then(|kind| kind.call1((this, instance))),
    };
    bound.map_or_else(
        |error| {
            error.restore(py);
            ptr::null_mut()
        },
        Bound::into_ptr,
    )
}

fn method_type(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static KIND: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    KIND.import(py, "types", "MethodType")
}

/// The type's `__repr__`.
///
/// # Safety
/// As for [`call_vector`].
unsafe extern "C" fn represent(this: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: Python holds the GIL during a call.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: `this` is an object.
    let this = unsafe { Bound::from_borrowed_ptr(py, this) };
    let name = this.getattr(intern!(py, "__qualname__")).map(|name| name.to_string());
    let text = format!("<function {}>", name.unwrap_or_default());
    PyString::new(py, &text).into_any().into_ptr()
}

/// `__reduce__`: pickles and copies refer to the function by its name.
///
/// # Safety
/// As for [`call_vector`].
unsafe extern "C" fn reduce(this: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: `this` is an object; the name is null-terminated.
    unsafe { ffi::PyObject_GetAttrString(this, c"__qualname__".as_ptr()) }
}

/// # Safety
/// As for [`call_vector`]; nothing refers to the object.
unsafe extern "C" fn free(this: *mut ffi::PyObject) {
    // SAFETY: `this` owns its fields; an object of a heap type owns a reference to the type.
    unsafe {
        let fields = &*this.cast::<PublicFunction>();
        ffi::Py_XDECREF(fields.function);
        ffi::Py_XDECREF(fields.under_autocast);
        ffi::Py_XDECREF(fields.recover);
        ffi::Py_XDECREF(fields.attributes);
        let kind = ffi::Py_TYPE(this);
        ffi::PyObject_Free(this.cast());
        ffi::Py_DECREF(kind.cast());
    }
}

/// Makes the type.
fn make_type(py: Python<'_>) -> PyResult<Py<PyType>> {
    let member = |name: &'static CStr, offset: usize| ffi::PyMemberDef {
        name: name.as_ptr(),
        type_code: ffi::Py_T_PYSSIZET,
        offset: offset as ffi::Py_ssize_t,
        flags: ffi::Py_READONLY,
        doc: ptr::null(),
    };
    let members = [
        member(c"__vectorcalloffset__", offset_of!(PublicFunction, vectorcall)),
        member(c"__dictoffset__", offset_of!(PublicFunction, attributes)),
        ffi::PyMemberDef::default(),
    ];
    let methods = [
        ffi::PyMethodDef {
            ml_name: c"__reduce__".as_ptr(),
            ml_meth: ffi::PyMethodDefPointer { PyCFunction: reduce },
            ml_flags: ffi::METH_NOARGS,
            ml_doc: ptr::null(),
        },
        ffi::PyMethodDef::zeroed(),
    ];
    // Python keeps pointers to both tables.
    let (members, methods) = (Box::leak(Box::new(members)), Box::leak(Box::new(methods)));
    // `__dict__` itself, for `vars` and `functools.wraps`.
    let properties = Box::leak(Box::new([
        ffi::PyGetSetDef {
            name: c"__dict__".as_ptr(),
            get: Some(ffi::PyObject_GenericGetDict),
            set: Some(ffi::PyObject_GenericSetDict),
            doc: ptr::null(),
            closure: ptr::null_mut(),
        },
        ffi::PyGetSetDef::default(),
    ]));
    let slot = |slot: c_int, pfunc: *mut c_void| ffi::PyType_Slot { slot, pfunc };
    let mut slots = [
        slot(ffi::Py_tp_call, call_tuple as *mut c_void),
        slot(ffi::Py_tp_descr_get, bind as *mut c_void),
        slot(ffi::Py_tp_repr, represent as *mut c_void),
        slot(ffi::Py_tp_dealloc, free as *mut c_void),
        slot(ffi::Py_tp_members, members.as_mut_ptr().cast()),
        slot(ffi::Py_tp_methods, methods.as_mut_ptr().cast()),
        slot(ffi::Py_tp_getset, properties.as_mut_ptr().cast()),
        slot(0, ptr::null_mut()),
    ];
    let flags = ffi::Py_TPFLAGS_DEFAULT
        | HAVE_VECTORCALL
        | ffi::Py_TPFLAGS_METHOD_DESCRIPTOR
        | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION;
    let mut spec = ffi::PyType_Spec {
        name: c"gt.function".as_ptr(),
        basicsize: size_of::<PublicFunction>() as c_int,
        itemsize: 0,
        flags: flags as c_uint,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the slots are those of the functions and tables above, which have the types that
    // Python expects of them; the object begins with Python's header.
    let kind = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpec(&mut spec)) }?;
    Ok(kind.cast_into::<PyType>()?.unbind())
}

/// Return a function that calls another one and shows errors as the user sees them: without frames
/// of GT's own code, and named as the operation that was called.
///
/// Args:
///     function: the Python function.
///     name: the name of the operation, by which errors name it; None for a function that errors do
///         not name.
///     under_autocast: what is called instead under autocast.
///     recover: what is called with the positional arguments, the named ones and the error after a
///         TypeError or an AttributeError; it returns the result or raises.
#[pyfunction]
#[pyo3(signature = (function, name=None, under_autocast=None, recover=None))]
fn public_function<'py>(
    py: Python<'py>,
    function: Bound<'py, PyAny>,
    name: Option<String>,
    under_autocast: Option<Bound<'py, PyAny>>,
    recover: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    static KIND: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let kind = KIND.get_or_try_init(py, || make_type(py))?.bind(py);
    let pointer =
        |object: Option<Bound<'py, PyAny>>| object.map_or(ptr::null_mut(), Bound::into_ptr);
    // SAFETY: the new object has the layout of `PublicFunction`; every field is written before the
    // object is used. Python has set its header.
    let object = unsafe {
        let object = ffi::PyType_GenericAlloc(kind.as_type_ptr(), 0);
        let object = Bound::from_owned_ptr_or_err(py, object)?;
        let fields = object.as_ptr().cast::<PublicFunction>();
        ptr::addr_of_mut!((*fields).vectorcall).write(call_vector);
        ptr::addr_of_mut!((*fields).function).write(function.clone().into_ptr());
        ptr::addr_of_mut!((*fields).under_autocast).write(pointer(under_autocast));
        ptr::addr_of_mut!((*fields).recover).write(pointer(recover));
        ptr::addr_of_mut!((*fields).attributes).write(PyDict::new(py).into_ptr());
        ptr::addr_of_mut!((*fields).shown).write(ShownName::new(name));
        object
    };
    // A function that wraps a public one may have its names among its attributes, so the function's
    // own names are set last.
    let of = py.import("functools")?;
    of.call_method1("update_wrapper", (&object, &function))?;
    let none = PyTuple::empty(py);
    let names = of.getattr("WRAPPER_ASSIGNMENTS")?;
    of.call_method1("update_wrapper", (&object, function, names, none))?;
    Ok(object)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Looked up now: see `source::register`.
    object_vectorcall();
    module.add_function(wrap_pyfunction!(public_function, module)?)
}
