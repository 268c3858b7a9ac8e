//! The Python type of public functions. It binds as a method like a function.

use std::ffi::{CStr, c_int, c_uint, c_ulong, c_void};
use std::mem::offset_of;
use std::ptr;
use std::sync::OnceLock;

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use super::call::{PublicFunction, call_vector, object_vectorcall, symbol};
use super::present::ShownName;
use super::result;

/// `Py_TPFLAGS_HAVE_VECTORCALL`: the flag of types whose objects have a vectorcall function. It is
/// not in the stable ABI of CPython 3.10 and 3.11, which have it.
const HAVE_VECTORCALL: c_ulong = 1 << 11;

/// The type's `__get__`: a bound method where it is read from an instance.
///
/// # Safety
/// Called by Python alone, for objects of the type of [`PublicFunction`]; `instance` is an object or null.
unsafe extern "C" fn bind(
    this: *mut ffi::PyObject,
    instance: *mut ffi::PyObject,
    _class: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python holds the GIL during a call.
    let py = unsafe { Python::assume_attached() };
    if let (Some(bound_method), false) = (new_method(), instance.is_null()) {
        // SAFETY: both are objects.
        return unsafe { bound_method(this, instance) };
    }
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

/// `PyMethod_New`: returns a function that is bound to an object.
type NewMethod = unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject) -> *mut ffi::PyObject;

/// Returns `PyMethod_New`, which is not in the stable ABI, if this interpreter exports it.
fn new_method() -> Option<NewMethod> {
    static FOUND: OnceLock<Option<NewMethod>> = OnceLock::new();
    // SAFETY: CPython's function of this name has this type in all versions that export it; a null
    // pointer is `None`.
    *FOUND.get_or_init(|| unsafe {
        std::mem::transmute::<*mut c_void, Option<NewMethod>>(symbol(c"PyMethod_New"))
    })
}

fn method_type(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static KIND: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    KIND.import(py, "types", "MethodType")
}

/// The type's `__repr__`.
///
/// # Safety
/// Called by Python alone, for objects of the type of [`PublicFunction`].
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
/// Called by Python alone, for objects of the type of [`PublicFunction`].
unsafe extern "C" fn reduce(this: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: `this` is an object; the name is null-terminated.
    unsafe { ffi::PyObject_GetAttrString(this, c"__qualname__".as_ptr()) }
}

/// Attributes of plain functions, which a public function has from its own function.
const OF_FUNCTION: [&CStr; 5] =
    [c"__code__", c"__defaults__", c"__kwdefaults__", c"__globals__", c"__closure__"];

/// Returns one of [`OF_FUNCTION`].
///
/// # Safety
/// Called by Python alone, for objects of the type of [`PublicFunction`]; `name` is an entry's.
unsafe extern "C" fn attribute(this: *mut ffi::PyObject, name: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: the function is an object; the name is null-terminated.
    unsafe {
        let this = &*this.cast::<PublicFunction>();
        ffi::PyObject_GetAttrString(this.function, name.cast())
    }
}

/// Sets one of [`OF_FUNCTION`].
///
/// # Safety
/// As for [`attribute`]; `value` is an object, or null to delete the attribute.
unsafe extern "C" fn set_attribute(
    this: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
    name: *mut c_void,
) -> c_int {
    // SAFETY: as for this function.
    unsafe {
        let this = &*this.cast::<PublicFunction>();
        ffi::PyObject_SetAttrString(this.function, name.cast(), value)
    }
}

/// Returns the type of plain functions as `__class__`, so that `inspect.isfunction` and `isinstance`
/// take a public function for one.
///
/// # Safety
/// Called by Python alone.
unsafe extern "C" fn class(_: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: Python holds the GIL during a call.
    let py = unsafe { Python::assume_attached() };
    match result::function_type(py) {
        Ok(kind) => kind.clone_ref(py).into_ptr(),
        Err(error) => {
            error.restore(py);
            ptr::null_mut()
        }
    }
}

/// The type's `tp_traverse`: visits the objects that an object owns. There is no `tp_clear`, as in
/// tuples: a cycle contains a dict or a function, which break it, and the fields never change.
///
/// # Safety
/// Called by Python's garbage collector alone. Fields that are not written yet are null.
unsafe extern "C" fn traverse(
    this: *mut ffi::PyObject,
    visit: ffi::visitproc,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: `this` is a public function, whose fields are objects or null.
    let owned = unsafe {
        let fields = &*this.cast::<PublicFunction>();
        let kind = ffi::Py_TYPE(this).cast::<ffi::PyObject>();
        [kind, fields.function, fields.under_autocast, fields.recover, fields.attributes]
    };
    for object in owned {
        if !object.is_null() {
            // SAFETY: the collector's function is called as Python requires it.
            let stop = unsafe { visit(object, argument) };
            if stop != 0 {
                return stop;
            }
        }
    }
    0
}

/// The type's `tp_dealloc`.
///
/// # Safety
/// Called by Python alone, for objects of the type of [`PublicFunction`]; nothing refers to the
/// object.
unsafe extern "C" fn free(this: *mut ffi::PyObject) {
    // SAFETY: the object was tracked when it was made; an object of a heap type owns a reference to
    // the type.
    unsafe {
        ffi::PyObject_GC_UnTrack(this.cast());
        if !(*this.cast::<PublicFunction>()).weak_references.is_null() {
            ffi::PyObject_ClearWeakRefs(this);
        }
        let fields = &*this.cast::<PublicFunction>();
        ffi::Py_XDECREF(fields.function);
        ffi::Py_XDECREF(fields.under_autocast);
        ffi::Py_XDECREF(fields.recover);
        ffi::Py_XDECREF(fields.attributes);
        let kind = ffi::Py_TYPE(this);
        ffi::PyObject_GC_Del(this.cast());
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
        member(c"__weaklistoffset__", offset_of!(PublicFunction, weak_references)),
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
    let mut properties = vec![
        ffi::PyGetSetDef {
            name: c"__dict__".as_ptr(),
            get: Some(ffi::PyObject_GenericGetDict),
            set: Some(ffi::PyObject_GenericSetDict),
            ..ffi::PyGetSetDef::default()
        },
        ffi::PyGetSetDef {
            name: c"__class__".as_ptr(),
            get: Some(class),
            ..ffi::PyGetSetDef::default()
        },
    ];
    properties.extend(OF_FUNCTION.map(|name| ffi::PyGetSetDef {
        name: name.as_ptr(),
        get: Some(attribute),
        set: Some(set_attribute),
        doc: ptr::null(),
        closure: name.as_ptr().cast_mut().cast(),
    }));
    properties.push(ffi::PyGetSetDef::default());
    let properties = properties.leak();
    let slot = |slot: c_int, pfunc: *mut c_void| ffi::PyType_Slot { slot, pfunc };
    let mut slots = [
        // It calls the vectorcall function; all versions of CPython export it.
        slot(ffi::Py_tp_call, symbol(c"PyVectorcall_Call")),
        slot(ffi::Py_tp_descr_get, bind as *mut c_void),
        slot(ffi::Py_tp_repr, represent as *mut c_void),
        slot(ffi::Py_tp_dealloc, free as *mut c_void),
        slot(ffi::Py_tp_traverse, traverse as *mut c_void),
        slot(ffi::Py_tp_members, members.as_mut_ptr().cast()),
        slot(ffi::Py_tp_methods, methods.as_mut_ptr().cast()),
        slot(ffi::Py_tp_getset, properties.as_mut_ptr().cast()),
        slot(0, ptr::null_mut()),
    ];
    let flags = ffi::Py_TPFLAGS_DEFAULT
        | HAVE_VECTORCALL
        | ffi::Py_TPFLAGS_HAVE_GC
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
///     recover: what is called after a TypeError or an AttributeError: with the positional arguments,
///         the named ones, the error or None, and whether the user's code has made the call; it
///         returns the result, or the error itself to have it raised unchanged, or raises another.
///     converts: whether `recover` is called instead of the function if an argument is an array or a
///         tensor of PyTorch's.
#[pyfunction]
#[pyo3(signature = (function, name=None, under_autocast=None, recover=None, converts=false))]
fn public_function<'py>(
    py: Python<'py>,
    function: Bound<'py, PyAny>,
    name: Option<String>,
    under_autocast: Option<Bound<'py, PyAny>>,
    recover: Option<Bound<'py, PyAny>>,
    converts: bool,
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
        ptr::addr_of_mut!((*fields).weak_references).write(ptr::null_mut());
        ptr::addr_of_mut!((*fields).function).write(function.clone().into_ptr());
        ptr::addr_of_mut!((*fields).under_autocast).write(pointer(under_autocast));
        ptr::addr_of_mut!((*fields).recover).write(pointer(recover));
        ptr::addr_of_mut!((*fields).attributes).write(PyDict::new(py).into_ptr());
        ptr::addr_of_mut!((*fields).shown).write(ShownName::new(name));
        ptr::addr_of_mut!((*fields).converts).write(converts);
        ptr::addr_of_mut!((*fields).make)
            .write(|function| public_function(function.py(), function, None, None, None, false));
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
    new_method();
    result::register(module.py())?;
    module.add_function(wrap_pyfunction!(public_function, module)?)
}
