//! How an error that leaves a public function is shown.

use std::collections::HashSet;
use std::sync::{LazyLock, PoisonError, RwLock};

use gt::environment;
use gt::ir::ops;
use pyo3::exceptions::{PyAssertionError, PyAttributeError, PyConnectionError, PyKeyError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyTraceback, PyTuple, PyType};

use crate::source;

/// The names of all operations, by which messages of errors begin.
static NAMES: LazyLock<RwLock<HashSet<&'static str>>> = LazyLock::new(|| {
    let primitives = ops::ALL.iter();
    let names = primitives.flat_map(|of| [of.name].into_iter().chain(of.aliases.iter().copied()));
    RwLock::new(names.collect())
});

/// Whether tracebacks keep the frames of GT's own code.
static KEEPS_FRAMES: LazyLock<bool> = LazyLock::new(|| environment::is_set("GT_FULL_TRACEBACK"));

/// The name of an operation in errors, or none.
#[derive(Clone, Copy)]
pub struct ShownName(Option<&'static str>);

impl ShownName {
    pub fn is_some(&self) -> bool {
        self.0.is_some()
    }

    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// The name lives as long as the process, like public functions.
    pub fn new(name: Option<String>) -> Self {
        let Some(name) = name else { return Self(None) };
        let mut names = NAMES.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = names.get(name.as_str()) {
            return Self(Some(known));
        }
        let name: &'static str = Box::leak(name.into_boxed_str());
        names.insert(name);
        Self(Some(name))
    }
}

/// Returns an error as the user sees it: frames of GT's own code are removed from its traceback,
/// with those of Python's library that GT's code calls; and a message begins with `shown` if GT
/// raised the error.
///
/// `is_users` is whether the user's code has called the function: frames stay until then.
pub fn present(py: Python<'_>, error: PyErr, shown: &ShownName, is_users: bool) -> PyErr {
    let Some(mut entry) = error.traceback(py).map(Bound::into_any) else { return error };
    let mut kept = Vec::new();
    let mut own = false;
    let raised_by_gt = loop {
        own = is_own(&entry).unwrap_or(false) || own && is_of_library(&entry).unwrap_or(false);
        if !own {
            kept.push(entry.clone());
        }
        match entry.getattr(intern!(py, "tb_next")) {
            Ok(next) if !next.is_none() => entry = next,
            _ => break own,
        }
    };
    if raised_by_gt && let Some(name) = shown.0 {
        rename(error.value(py), name, is_users);
    }
    if is_users && !*KEEPS_FRAMES {
        // A failure to make the traceback, such as one for want of memory, leaves it as it was.
        if let Ok(traceback) = joined(py, &kept) {
            error.set_traceback(py, traceback);
        }
    }
    error
}

/// Whether an entry of a traceback is of GT's own code.
fn is_own(entry: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = entry.py();
    let frame = entry.getattr(intern!(py, "tb_frame"))?;
    let code = frame.getattr(intern!(py, "f_code"))?;
    if source::is_own_code(&code) {
        return Ok(true);
    }
    if code.getattr(intern!(py, "co_filename"))?.cast::<PyString>()? != "<string>" {
        return Ok(false);
    }
    // The constructor of a data class belongs to the module of the class.
    let module = frame.getattr(intern!(py, "f_globals"))?.get_item(intern!(py, "__name__"))?;
    Ok(module.cast::<PyString>()?.to_cow()?.starts_with("gt."))
}

/// Whether an entry of a traceback is of Python's library.
fn is_of_library(entry: &Bound<'_, PyAny>) -> PyResult<bool> {
    static FOLDER: PyOnceLock<String> = PyOnceLock::new();
    let py = entry.py();
    let folder = FOLDER.get_or_try_init(py, || {
        let file: String = py.import("os")?.getattr(intern!(py, "__file__"))?.extract()?;
        PyResult::Ok(file.trim_end_matches("os.py").to_owned())
    })?;
    let code = entry.getattr(intern!(py, "tb_frame"))?.getattr(intern!(py, "f_code"))?;
    let file: String = code.getattr(intern!(py, "co_filename"))?.extract()?;
    let inside = file.strip_prefix(folder.as_str());
    Ok(inside.is_some_and(|path| !path.contains("-packages")) || file.starts_with("<frozen "))
}

/// Returns a traceback of some entries of another one, if there are any.
fn joined<'py>(
    py: Python<'py>,
    entries: &[Bound<'py, PyAny>],
) -> PyResult<Option<Bound<'py, PyTraceback>>> {
    static KIND: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let kind = KIND.import(py, "types", "TracebackType")?;
    let mut next = None;
    for entry in entries.iter().rev() {
        let frame = entry.getattr(intern!(py, "tb_frame"))?;
        let (last, line) = (intern!(py, "tb_lasti"), intern!(py, "tb_lineno"));
        let made = kind.call1((next, frame, entry.getattr(last)?, entry.getattr(line)?))?;
        next = Some(made.cast_into::<PyTraceback>()?);
    }
    Ok(next)
}

/// Lets a message begin with `name`, in place of the name of another operation. One that begins
/// with no name gets the name of the function that the user has called.
fn rename(error: &Bound<'_, PyAny>, name: &str, is_users: bool) {
    let py = error.py();
    let renamed = || {
        let args = error.getattr(intern!(py, "args")).ok()?.cast_into::<PyTuple>().ok()?;
        let text: String = args.get_item(0).ok()?.extract().ok()?;
        if args.len() != 1 || is_quoted(error) {
            return None;
        }
        let rest = match text.split_once(": ") {
            Some((operation, rest)) if is_operation(operation) => rest,
            // It names another function, or a class.
            Some((before, _)) if !before.contains([' ', '\n']) => return None,
            _ if !is_users || text.starts_with(name) => return None,
            // It is of the session, whatever was called.
            _ if error.is_instance_of::<PyConnectionError>() => return None,
            _ => text.as_str(),
        };
        let args = PyTuple::new(py, [format!("{name}: {rest}")]).ok()?;
        error.setattr(intern!(py, "args"), args).ok()
    };
    // A message of another form stays as it is.
    let _: Option<()> = renamed();
}

fn is_operation(name: &str) -> bool {
    NAMES.read().unwrap_or_else(PoisonError::into_inner).contains(name)
}

/// Whether the text of an error is compared with that of another, or is no message.
fn is_quoted(error: &Bound<'_, PyAny>) -> bool {
    error.is_instance_of::<PyAssertionError>()
        || error.is_instance_of::<PyAttributeError>()
        || error.is_instance_of::<PyKeyError>()
}
