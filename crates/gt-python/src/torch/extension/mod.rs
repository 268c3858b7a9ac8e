//! Kernels that PyTorch calls without Python, where gt.torch's extension in C++ is built.
//!
//! The extension describes each call by its arguments ([`argument`], [`call`]); one that is like an
//! earlier one is done again ([`repeated`], [`effects`]), and any other goes to a kernel in Python.

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

/// What becomes of a call; as `CallOutcome` in extension.cpp.
#[repr(u32)]
enum CallOutcome {
    Done,
    /// The kernel in Python is to be called.
    Call,
    /// The same, and then [`finish`] or [`give_up`].
    Record,
}

/// A tensor that is to be made; as `NewTensor` in extension.cpp.
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

/// The results of a call, on PyTorch's side.
#[derive(Clone, Copy)]
struct ExtensionResults(*mut c_void);

/// How results are given; as `gt_torch_connect` fills it in.
#[repr(C)]
struct ResultFunctions {
    tensor: extern "C" fn(*mut c_void, *const NewTensor),
    argument: extern "C" fn(*mut c_void, u64),
    integer: extern "C" fn(*mut c_void, u64),
    list: extern "C" fn(*mut c_void, u32),
    nothing: extern "C" fn(*mut c_void),
}

static RESULT_FUNCTIONS: OnceLock<ResultFunctions> = OnceLock::new();

/// GT's side of calls; as `ExtensionCallbacks` in extension.cpp.
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

    /// Adds a list of the next results.
    fn list(self, count: u32) {
        (result_functions().list)(self.0, count);
    }

    /// Adds a tensor that is not there.
    fn nothing(self) {
        (result_functions().nothing)(self.0);
    }
}

fn result_functions() -> &'static ResultFunctions {
    RESULT_FUNCTIONS
        .get()
        .expect("filled in by `connect_extension`, before any kernel is registered")
}

/// # Safety
/// A kernel of [`register_repeated`]'s, and as many arguments as said.
unsafe extern "C" fn begin(
    kernel: *const ReplayedKernel,
    arguments: *const ExtensionArgument,
    count: usize,
    dtype: u8,
    results: *mut c_void,
) -> CallOutcome {
    // SAFETY: the caller's; kernels live as long as the process.
    let (kernel, arguments) = unsafe { (&*kernel, argument::list(arguments, count)) };
    let _blocker = ForkBlocker::new();
    // Nothing has been changed yet where it panics, as changes and results come last.
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        kernel.begin(arguments, dtype, ExtensionResults(results))
    }));
    outcome.unwrap_or(CallOutcome::Call)
}

/// # Safety
/// As [`begin`], with as many results as said.
unsafe extern "C" fn finish(
    kernel: *const ReplayedKernel,
    arguments: *const ExtensionArgument,
    count: usize,
    results: *const ExtensionArgument,
    results_count: usize,
) {
    // SAFETY: the caller's.
    let (kernel, arguments, results) = unsafe {
        (&*kernel, argument::list(arguments, count), argument::list(results, results_count))
    };
    let _blocker = ForkBlocker::new();
    // Where it panics, the call is done, and nothing is kept of it.
    let _ = catch_unwind(AssertUnwindSafe(|| kernel.finish(arguments, results)));
}

extern "C" fn give_up() {
    let _blocker = ForkBlocker::new();
    replay::give_up();
}

extern "C" fn remove(address: usize) {
    storage::remove(address);
}

/// # Safety
/// The library that has been opened has this function, with the type `F`.
unsafe fn function<F: Copy>(library: *mut c_void, name: &CStr) -> PyResult<F> {
    // SAFETY: a handle of `dlopen`, and a text.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    if found.is_null() {
        return Err(PyRuntimeError::new_err(format!(
            "gt.torch: the extension has no function {name:?}\n  hint: python -m gt.torch.build builds it anew"
        )));
    }
    // SAFETY: the caller's.
    Ok(unsafe { mem::transmute_copy::<*mut c_void, F>(&found) })
}

type Register = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    *const c_char,
    *const ReplayedKernel,
) -> *const c_char;

static REGISTER: OnceLock<Register> = OnceLock::new();

/// Loads the extension, a file. From then on it is the device's guard, and makes its views.
#[pyfunction]
pub fn connect_extension(path: &str) -> PyResult<()> {
    let name = CString::new(path)?;
    // SAFETY: a text. Loading runs initializers of the file's, which is built from extension.cpp.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        // SAFETY: what `dlopen` has failed with, a text until the next call on this thread.
        let why = unsafe { CStr::from_ptr(libc::dlerror()) }.to_string_lossy().into_owned();
        return Err(PyRuntimeError::new_err(format!("gt.torch: {path} cannot be loaded: {why}")));
    }
    // SAFETY: the types of the functions in extension.cpp; the second call fills in a
    // `ResultFunctions`.
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

/// Makes an operator's kernel one that repeats what the kernel in Python has done for a like call.
///
/// `schema` declares the operator, without its namespace. That kernel is to be registered for an
/// operator declared alike in the namespace `gt_cluster`, which this makes. `passes_numbers` says
/// that it hands numbers on to operations as they are.
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
    let kernel = Box::leak(Box::new(ReplayedKernel::new(passes_numbers)));
    let (name, overload) = (CString::new(name)?, CString::new(overload)?);
    let schema = CString::new(schema)?;
    // SAFETY: three texts, and a kernel that lives as long as the process.
    let failure = unsafe { register(name.as_ptr(), overload.as_ptr(), schema.as_ptr(), kernel) };
    if failure.is_null() {
        return Ok(());
    }
    // SAFETY: a text until the next call.
    let why = unsafe { CStr::from_ptr(failure) }.to_string_lossy().into_owned();
    Err(PyRuntimeError::new_err(format!("gt.torch: no kernel for {name:?}: {why}")))
}
