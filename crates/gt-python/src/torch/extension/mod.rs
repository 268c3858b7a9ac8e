//! Kernels that PyTorch calls without Python, if the C++ extension of gt.torch is built.
//!
//! The extension describes each call by its arguments ([`argument`], [`call`]). A call with the key
//! of an earlier one is replayed ([`replay`], [`effects`]); others are forwarded to the Python
//! kernel, and recorded ([`recording`]).

mod argument;
mod call;
mod effects;
mod recording;
mod replay;

use std::ffi::{CStr, CString, c_char, c_void};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::storage;
use crate::session::ForkBlocker;
use argument::ExtensionArgument;
use effects::RecordedLayout;
use replay::ReplayedKernel;

/// How the extension proceeds with a call; must match `Outcome` in extension.cpp.
#[repr(u32)]
enum CallOutcome {
    Done,
    /// Call the Python kernel.
    Call,
    /// Call the Python kernel, and then [`finish`], or [`give_up`] if it fails.
    Record,
}

/// The description of a tensor to create; must match `Made` in extension.cpp.
#[repr(C)]
struct NewTensor {
    address: usize,
    bytes: u64,
    offset: i64,
    sizes: *const i64,
    strides: *const i64,
    rank: u32,
    dtype: u32,
}

/// The extension's list of a call's results.
#[derive(Clone, Copy)]
struct ExtensionResults(*mut c_void);

/// The extension's functions that append results; `gt_torch_connect` fills it in.
#[repr(C)]
struct ResultFunctions {
    tensor: extern "C" fn(*mut c_void, *const NewTensor),
    argument: extern "C" fn(*mut c_void, u64),
    integer: extern "C" fn(*mut c_void, u64),
    list: extern "C" fn(*mut c_void, u32),
    nothing: extern "C" fn(*mut c_void),
}

static RESULT_FUNCTIONS: OnceLock<ResultFunctions> = OnceLock::new();

/// The functions that the extension calls; must match `Calls` in extension.cpp.
#[repr(C)]
struct ExtensionCallbacks {
    begin: unsafe extern "C" fn(
        *const ReplayedKernel,
        *const ExtensionArgument,
        usize,
        u8,
        *mut c_void,
    ) -> CallOutcome,
    finish: unsafe extern "C" fn(
        *const ReplayedKernel,
        *const ExtensionArgument,
        usize,
        *const ExtensionArgument,
        usize,
    ),
    give_up: extern "C" fn(),
    remove: extern "C" fn(usize),
}

impl ExtensionResults {
    /// Adds a new tensor over a storage.
    fn tensor(self, address: usize, bytes: usize, layout: &RecordedLayout) {
        let made = NewTensor {
            address,
            bytes: bytes as u64,
            offset: layout.offset,
            sizes: layout.sizes.as_ptr(),
            strides: layout.strides.as_ptr(),
            rank: layout.sizes.len() as u32,
            dtype: u32::from(argument::number(layout.dtype)),
        };
        (result_functions().tensor)(self.0, &raw const made);
    }

    /// Adds one of the arguments.
    fn argument(self, argument: &ExtensionArgument) {
        (result_functions().argument)(self.0, argument.value);
    }

    fn integer(self, number: u64) {
        (result_functions().integer)(self.0, number);
    }

    /// Adds a list, to which the next `count` tensors are appended.
    fn list(self, count: u32) {
        (result_functions().list)(self.0, count);
    }

    /// Adds an undefined tensor.
    fn nothing(self) {
        (result_functions().nothing)(self.0);
    }
}

fn result_functions() -> &'static ResultFunctions {
    RESULT_FUNCTIONS
        .get()
        .expect("filled in by `connect_extension`, before any kernel is registered")
}

/// Starts a call: replays it, or returns how to proceed.
///
/// # Safety
/// `kernel` comes from [`register_repeated`], and there are `count` arguments.
unsafe extern "C" fn begin(
    kernel: *const ReplayedKernel,
    arguments: *const ExtensionArgument,
    count: usize,
    dtype: u8,
    results: *mut c_void,
) -> CallOutcome {
    // SAFETY: by the caller's contract; kernels live as long as the process.
    let (kernel, arguments) = unsafe { (&*kernel, argument::list(arguments, count)) };
    let _blocker = ForkBlocker::new();
    // If it panics, nothing has changed yet: writes and results are last.
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        kernel.begin(arguments, dtype, ExtensionResults(results))
    }));
    outcome.unwrap_or(CallOutcome::Call)
}

/// Finishes the recording of a call.
///
/// # Safety
/// As for [`begin`]; there are `results_count` results.
unsafe extern "C" fn finish(
    kernel: *const ReplayedKernel,
    arguments: *const ExtensionArgument,
    count: usize,
    results: *const ExtensionArgument,
    results_count: usize,
) {
    // SAFETY: by the caller's contract.
    let (kernel, arguments, results) = unsafe {
        (&*kernel, argument::list(arguments, count), argument::list(results, results_count))
    };
    let _blocker = ForkBlocker::new();
    // If it panics, the call itself is complete, and is not cached.
    let _ = catch_unwind(AssertUnwindSafe(|| kernel.finish(arguments, results)));
}

/// Drops the recording of a call that failed.
extern "C" fn give_up() {
    let _blocker = ForkBlocker::new();
    replay::give_up();
}

/// Removes the storage at an address.
extern "C" fn remove(address: usize) {
    storage::remove(address);
}

/// Looks up a function of the extension.
///
/// # Safety
/// `library` is an open library, and its function of this name has the type `F`.
unsafe fn function<F: Copy>(library: *mut c_void, name: &CStr) -> PyResult<F> {
    // SAFETY: a handle of `dlopen`, and a C string.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    if found.is_null() {
        return Err(PyRuntimeError::new_err(format!(
            "gt.torch: the extension has no function {name:?}\n  hint: python -m gt.torch.build builds it anew"
        )));
    }
    // SAFETY: by the caller's contract.
    Ok(unsafe { mem::transmute_copy::<*mut c_void, F>(&found) })
}

type Register = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    *const c_char,
    *const ReplayedKernel,
) -> *const c_char;

static REGISTER: OnceLock<Register> = OnceLock::new();

/// Load the extension from a file. It registers the device's guard and the kernels of views.
#[pyfunction]
pub fn connect_extension(path: &str) -> PyResult<()> {
    let name = CString::new(path)?;
    // SAFETY: a C string. Loading runs the initializers of a library built from extension.cpp.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        // SAFETY: the error of `dlopen`, a C string until the next call on this thread.
        let why = unsafe { CStr::from_ptr(libc::dlerror()) }.to_string_lossy().into_owned();
        return Err(PyRuntimeError::new_err(format!("gt.torch: {path} cannot be loaded: {why}")));
    }
    // SAFETY: the types match the functions in extension.cpp; `connect` fills in `ResultFunctions`.
    unsafe {
        let connect: unsafe extern "C" fn(*const ExtensionCallbacks, *mut ResultFunctions) =
            function(library, c"gt_torch_connect")?;
        let register = function::<Register>(library, c"gt_torch_register")?;
        let calls = ExtensionCallbacks { begin, finish, give_up, remove };
        let mut give = mem::MaybeUninit::<ResultFunctions>::uninit();
        connect(&raw const calls, give.as_mut_ptr());
        let _ = RESULT_FUNCTIONS.set(give.assume_init());
        let _ = REGISTER.set(register);
    }
    Ok(())
}

/// Register a kernel of an operator that replays earlier calls of its Python kernel.
///
/// This declares an operator of the same schema in the namespace `gt_cluster`, for which the Python
/// kernel must be registered.
///
/// Args:
///     schema: the declaration of the operator, without its namespace.
///     passes_numbers: whether the Python kernel passes numbers unchanged to operations.
#[pyfunction]
pub fn register_repeated(
    name: &str,
    overload: &str,
    schema: &str,
    passes_numbers: bool,
) -> PyResult<()> {
    let register = REGISTER.get().ok_or_else(|| {
        PyRuntimeError::new_err("gt.torch: the extension is to be connected first")
    })?;
    let kernel = match overload {
        "" => format!("aten::{name}"),
        _ => format!("aten::{name}.{overload}"),
    };
    let kernel = Box::leak(Box::new(ReplayedKernel::new(&kernel, passes_numbers)));
    let (name, overload) = (CString::new(name)?, CString::new(overload)?);
    let schema = CString::new(schema)?;
    // SAFETY: three C strings, and a kernel that lives as long as the process.
    let failure = unsafe { register(name.as_ptr(), overload.as_ptr(), schema.as_ptr(), kernel) };
    if failure.is_null() {
        return Ok(());
    }
    // SAFETY: a C string until the next call.
    let why = unsafe { CStr::from_ptr(failure) }.to_string_lossy().into_owned();
    Err(PyRuntimeError::new_err(format!("gt.torch: no kernel for {name:?}: {why}")))
}
