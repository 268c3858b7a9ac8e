//! The line of the user's program that issues an instruction, and the GT function that it calls.
//! Errors that are raised later name both.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_int, c_void};
use std::mem::ManuallyDrop;
use std::sync::{LazyLock, OnceLock, PoisonError, RwLock};

use gt::ir::SourceId;
use gt::source::{self, CallId, UserCall};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;
use rustc_hash::FxHashMap;

use crate::user_code::LATEST;

/// The folders of GT, which comes first, PyTorch and other packages whose lines are not the user's.
static PACKAGES: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// The public functions, by the addresses of their code objects, which are never freed.
static CALLS: LazyLock<RwLock<FxHashMap<usize, CallId>>> = LazyLock::new(RwLock::default);

/// A code object that was seen before.
enum KnownCode {
    /// Code of a registered package, possibly a public function; the user's line is in a caller.
    Own(CallId),
    /// The user's code: the ids of its lines, by instruction and the function called there.
    User { file: String, lines: FxHashMap<(i64, CallId), SourceId> },
}

/// Whether a frame belongs to a package or to the user.
enum FrameOrigin {
    Own(CallId),
    User(SourceId),
}

/// The code objects that a thread has seen, by address. An entry keeps its code object alive, so
/// that the address is not reused. The end of the thread does not release it: the GIL is not held
/// then, so PyO3 would take a lock, which a child forked at that moment would wait for.
type KnownCodes = FxHashMap<usize, (ManuallyDrop<Py<PyAny>>, KnownCode)>;

/// The source position of a thread.
struct ThreadPosition {
    /// The line to which instructions are attributed while the thread runs no user code; 0 means
    /// the line recorded last.
    attributed: Cell<SourceId>,
    /// Whether the thread ran no user code at the last call of [`note`].
    runs_no_user_code: Cell<bool>,
    /// The code object, instruction and function that were looked up last, and the id of their
    /// line: a cache of one entry, for loops.
    last: Cell<(usize, (i64, CallId), SourceId)>,
    /// The frame that called the backward function that runs, and the line whose gradients it
    /// computes.
    gradient: Cell<(usize, SourceId)>,
}

thread_local! {
    static POSITION: ThreadPosition = const {
        ThreadPosition {
            attributed: Cell::new(SourceId(0)),
            runs_no_user_code: Cell::new(false),
            last: Cell::new((0, (0, CallId::NONE), SourceId(0))),
            gradient: Cell::new((0, SourceId(0))),
        }
    };

    /// Apart from the position, which each operation reads: a local without a destructor is faster.
    static KNOWN: RefCell<KnownCodes> = RefCell::default();
}

/// `PyFrame_GetBack`: returns a new reference to the calling frame, or null.
type GetBack = unsafe extern "C" fn(*mut ffi::PyFrameObject) -> *mut ffi::PyFrameObject;
/// `PyFrame_GetLasti`: returns the index of the instruction that a frame executes.
type GetLasti = unsafe extern "C" fn(*mut ffi::PyFrameObject) -> c_int;

/// Functions of CPython outside the stable ABI; they are faster than the frame's attributes.
struct FrameFunctions {
    back: Option<GetBack>,
    last: Option<GetLasti>,
}

/// Returns the frame functions that this interpreter has.
fn frame_functions() -> &'static FrameFunctions {
    static FUNCTIONS: OnceLock<FrameFunctions> = OnceLock::new();
    FUNCTIONS.get_or_init(|| {
        let found = |name: &CStr| {
            // SAFETY: the name is null-terminated; the process and its libraries are searched.
            unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
        };
        // SAFETY: CPython's functions of these names have these types in all versions that have
        // them; a null pointer is `None`.
        unsafe {
            FrameFunctions {
                back: std::mem::transmute::<*mut c_void, Option<GetBack>>(found(
                    c"PyFrame_GetBack",
                )),
                last: std::mem::transmute::<*mut c_void, Option<GetLasti>>(found(
                    c"PyFrame_GetLasti",
                )),
            }
        }
    })
}

/// Returns the frame that called `frame`.
fn calling_frame<'py>(frame: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let Some(back) = frame_functions().back else {
        let back = frame.getattr(intern!(frame.py(), "f_back")).ok()?;
        return (!back.is_none()).then_some(back);
    };
    // SAFETY: `frame` is a frame object; the result is a new reference, or null without an error.
    unsafe {
        let back = back(frame.as_ptr().cast()).cast::<ffi::PyObject>();
        Bound::from_owned_ptr_or_opt(frame.py(), back)
    }
}

/// Returns the index of the instruction that a frame executes; -1 if it is unknown.
fn instruction_index(frame: &Bound<'_, PyAny>) -> i64 {
    if let Some(last) = frame_functions().last {
        // SAFETY: `frame` is a frame object.
        return i64::from(unsafe { last(frame.as_ptr().cast()) });
    }
    let place = frame.getattr(last_instruction(frame.py()));
    place.and_then(|place| place.extract()).unwrap_or(-1)
}

/// Records the user's line that issues the following instructions of this thread. If the thread
/// runs no user code, as the threads of PyTorch's backward passes, they are attributed to the line
/// recorded last. Returns whether the thread runs no user code.
pub fn note(py: Python<'_>) -> bool {
    POSITION.with(|position| position.note(py))
}

/// Like [`note`], but drops the line set by [`attribute_to`] first.
pub fn note_unattributed(py: Python<'_>) -> bool {
    POSITION.with(|position| {
        position.attributed.set(SourceId(0));
        position.note(py)
    })
}

/// Attributes the instructions of this thread to a line while it runs no user code.
pub fn attribute_to(line: SourceId) {
    POSITION.with(|position| {
        position.attributed.set(line);
        if position.runs_no_user_code.get() && line.0 != 0 {
            source::set(line);
        }
    });
}

/// Returns whether this thread ran no user code at the last call of [`note`].
pub fn runs_no_user_code() -> bool {
    POSITION.with(|position| position.runs_no_user_code.get())
}

/// Runs a function of a backward pass. Instructions that GT's own code issues in it are attributed
/// to the line that is set now, whose gradients it computes; those of user code to the user's
/// lines.
pub fn within_gradient<T>(py: Python<'_>, function: impl FnOnce() -> T) -> T {
    struct RestoreGradient((usize, SourceId));
    impl Drop for RestoreGradient {
        fn drop(&mut self) {
            POSITION.with(|position| position.gradient.set(self.0));
        }
    }
    let _py = py;
    // SAFETY: the GIL is held (`py`); only the address of the frame is used, and the frame outlives
    // this function.
    let frame = unsafe { ffi::PyEval_GetFrame() } as usize;
    let _restore = RestoreGradient(
        POSITION.with(|position| position.gradient.replace((frame, source::current()))),
    );
    function()
}

/// Returns the name of the frame attribute that holds the instruction index.
pub fn last_instruction(py: Python<'_>) -> &Bound<'_, PyString> {
    intern!(py, "f_lasti")
}

impl ThreadPosition {
    fn note(&self, py: Python<'_>) -> bool {
        let found = self.find(py);
        if let Some(source) = found {
            LATEST.note_line(source);
        }
        self.runs_no_user_code.set(found.is_none());
        let latest = || match self.attributed.get() {
            SourceId(0) => LATEST.line(),
            attributed => attributed,
        };
        source::set(found.unwrap_or_else(latest));
        found.is_none()
    }

    /// Returns the user's line that runs now, if one of the innermost 64 frames is the user's.
    fn find(&self, py: Python<'_>) -> Option<SourceId> {
        // SAFETY: the GIL is held (`py`); the result is borrowed from the running frame, or null.
        let frame = unsafe { ffi::PyEval_GetFrame() };
        if frame.is_null() {
            return None;
        }
        // SAFETY: `frame` is a valid frame object for as long as its code runs, which it does now.
        let mut frame =
            unsafe { Bound::<PyAny>::from_borrowed_ptr(py, frame.cast::<ffi::PyObject>()) };
        let (pass, of) = self.gradient.get();
        let mut call = CallId::NONE;
        for _ in 0..64 {
            if frame.as_ptr() as usize == pass {
                return Some(of);
            }
            match self.lookup(&frame, call)? {
                FrameOrigin::User(source) => return Some(source),
                // The outermost public function is the one that the user calls.
                FrameOrigin::Own(own) if own != CallId::NONE => call = own,
                FrameOrigin::Own(_) => {}
            }
            frame = calling_frame(&frame)?;
        }
        None
    }

    /// Returns the origin of a frame: a package's function, or the id of the user's line in which
    /// `call` was called.
    fn lookup(&self, frame: &Bound<'_, PyAny>, call: CallId) -> Option<FrameOrigin> {
        let pointer = frame.as_ptr().cast::<ffi::PyFrameObject>();
        // SAFETY: `frame` is a frame object; the result is a new reference to its code object.
        let code = unsafe {
            let code = ffi::PyFrame_GetCode(pointer).cast::<ffi::PyObject>();
            Bound::<PyAny>::from_owned_ptr_or_opt(frame.py(), code)?
        };
        let key = code.as_ptr() as usize;
        let own = |known: &KnownCodes| match known.get(&key) {
            Some((_, KnownCode::Own(call))) => Some(*call),
            _ => None,
        };
        let (last_key, last_at, last_source) = self.last.get();
        if last_key != key
            && let Some(own) = KNOWN.with_borrow(own)
        {
            return Some(FrameOrigin::Own(own));
        }
        // Lines are cached by instruction: CPython finds a line by scanning the code object's table
        // from its start, which is too slow for each call.
        let at = (instruction_index(frame), call);
        if (last_key, last_at) == (key, at) {
            return Some(FrameOrigin::User(last_source));
        }
        if !KNOWN.with_borrow(|known| known.contains_key(&key)) {
            // The name of a file may be found by Python code, which may run any other.
            let entry = known_code(&code);
            let code = ManuallyDrop::new(code.unbind());
            KNOWN.with_borrow_mut(|known| known.insert(key, (code, entry)));
        }
        let seen = KNOWN.with_borrow_mut(|known| {
            let (_, entry) = known.get_mut(&key)?;
            Some(match entry {
                KnownCode::Own(own) => FrameOrigin::Own(*own),
                KnownCode::User { file, lines } => {
                    FrameOrigin::User(*lines.entry(at).or_insert_with(|| {
                        // SAFETY: `pointer` is a frame object; this only reads it.
                        let line = unsafe { ffi::PyFrame_GetLineNumber(pointer) };
                        source::intern_within(&format!("{file}:{line}"), call)
                    }))
                }
            })
        })?;
        if let FrameOrigin::User(source) = seen {
            self.last.set((key, at, source));
        }
        Some(seen)
    }
}

/// Returns what is known of a code object that was not seen before.
fn known_code(code: &Bound<'_, PyAny>) -> KnownCode {
    let file: String =
        code.getattr("co_filename").and_then(|file| file.extract()).unwrap_or_default();
    let packages = PACKAGES.read().unwrap_or_else(PoisonError::into_inner);
    if packages.iter().any(|package| file.starts_with(package.as_str())) {
        let calls = CALLS.read().unwrap_or_else(PoisonError::into_inner);
        return KnownCode::Own(calls.get(&(code.as_ptr() as usize)).copied().unwrap_or_default());
    }
    drop(packages);
    KnownCode::User { file: shown_file(code, file), lines: Default::default() }
}

/// Returns the name under which users know a file: code that was typed, or that a notebook runs, is
/// in none.
fn shown_file(code: &Bound<'_, PyAny>, file: String) -> String {
    if !file.starts_with('<') && !file.contains("ipykernel") {
        return file;
    }
    let shown = || {
        let name = code.getattr("co_name")?;
        let lines = code.py().import("gt._lines")?;
        lines.call_method1("shown_file", (&file, name))?.extract()
    };
    shown().unwrap_or(file)
}

/// Whether a code object is of GT's own Python code.
pub fn is_own_code(code: &Bound<'_, PyAny>) -> bool {
    let file = code.getattr(intern!(code.py(), "co_filename"));
    file.and_then(|file| file.extract::<String>()).is_ok_and(|file| is_own(&file))
}

/// Whether a file is of GT's own Python code.
fn is_own(file: &str) -> bool {
    let packages = PACKAGES.read().unwrap_or_else(PoisonError::into_inner);
    packages.first().is_some_and(|folder| file.starts_with(folder.as_str()))
}

/// Whether the Python code that runs now is GT's.
pub fn is_called_by_gt(py: Python<'_>) -> bool {
    // SAFETY: the GIL is held (`py`); the result is borrowed from the running frame, or null.
    let frame = unsafe { ffi::PyEval_GetFrame() };
    if frame.is_null() {
        return false;
    }
    // SAFETY: `frame` is a frame object; the result is a new reference to its code object.
    let code = unsafe {
        let code = ffi::PyFrame_GetCode(frame).cast::<ffi::PyObject>();
        Bound::<PyAny>::from_owned_ptr_or_opt(py, code)
    };
    code.is_some_and(|code| is_own_code(&code))
}

/// Register a folder whose lines are not the user's. The first one is GT's.
#[pyfunction]
fn add_package_folder(folder: String) {
    PACKAGES.write().unwrap_or_else(PoisonError::into_inner).push(folder);
}

/// Register a public function by its code object, with the name of the operand whose values may be
/// invalid. Errors name both. Code that several functions share is not named in errors.
#[pyfunction]
fn add_call(code: Py<PyAny>, name: String, operand: String) {
    let call = source::intern_call(UserCall { name, operand });
    let mut calls = CALLS.write().unwrap_or_else(PoisonError::into_inner);
    // The reference is leaked on purpose, so that the address is not reused.
    let known = calls.entry(code.into_ptr() as usize).or_insert(call);
    if *known != call {
        *known = CallId::NONE;
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    frame_functions();
    module.add_function(wrap_pyfunction!(add_call, module)?)?;
    // Interned now, as the first use may release the GIL: if another thread forked at that moment,
    // the child would deadlock.
    last_instruction(module.py());
    module.add_function(wrap_pyfunction!(add_package_folder, module)?)
}
