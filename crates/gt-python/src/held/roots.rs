//! The variables of a program: of its main module, and of the functions that run.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};

/// The most frames of a thread that are looked at.
const MOST_FRAMES: usize = 200;

/// From this version on, the variables of functions that run can be read without a copy of them that
/// the functions would notice.
const LOCALS_FROM: (u8, u8) = (3, 13);

/// A variable and its value.
pub struct Variable<'py> {
    pub name: String,
    pub value: Bound<'py, PyAny>,
}

/// Returns the variables: those of `__main__`, then those of functions of the program that run on any
/// thread, the outermost first. Names that begin with `_`, as a notebook's results, come last.
pub fn variables(py: Python<'_>) -> Vec<Variable<'_>> {
    let mut all = main_variables(py).unwrap_or_default();
    all.sort_by_key(|variable| variable.name.starts_with('_'));
    if py.version_info() >= LOCALS_FROM {
        all.extend(local_variables(py).unwrap_or_default());
    }
    all
}

fn main_variables(py: Python<'_>) -> PyResult<Vec<Variable<'_>>> {
    let modules = py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?;
    let Some(main) = modules.get_item("__main__")? else { return Ok(Vec::new()) };
    let globals = main.cast_into::<PyModule>()?.dict();
    Ok(globals.iter().filter_map(|(name, value)| variable(&name, value)).collect())
}

fn variable<'py>(name: &Bound<'py, PyAny>, value: Bound<'py, PyAny>) -> Option<Variable<'py>> {
    Some(Variable { name: name.extract().ok()?, value })
}

fn local_variables(py: Python<'_>) -> PyResult<Vec<Variable<'_>>> {
    let sys = py.import("sys")?;
    let library = library_folder(py)?;
    let frames = sys.getattr("_current_frames")?.call0()?.cast_into::<PyDict>()?;
    let mut all = Vec::new();
    for frame in frames.values() {
        let mut own = Vec::new();
        let mut frame = frame;
        while !frame.is_none() && own.len() < MOST_FRAMES {
            if is_of_program(&frame, &library)? {
                own.push(frame.clone());
            }
            frame = frame.getattr("f_back")?;
        }
        for frame in own.iter().rev() {
            let locals = frame.getattr("f_locals")?.cast_into::<PyMapping>()?;
            for item in locals.items()?.iter() {
                let (name, value) = item.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
                all.extend(variable(&name, value));
            }
        }
    }
    Ok(all)
}

/// Returns whether a frame is of a function of the program, not of a library.
fn is_of_program(frame: &Bound<'_, PyAny>, library: &str) -> PyResult<bool> {
    let code = frame.getattr("f_code")?;
    let file: String = code.getattr("co_filename")?.extract()?;
    let name: String = code.getattr("co_name")?.extract()?;
    let is_library = file.starts_with(library)
        || file.starts_with("<frozen")
        || ["site-packages", "dist-packages"].iter().any(|folder| file.contains(folder));
    Ok(!is_library && name != "<module>")
}

/// Returns the folder of Python's own modules.
fn library_folder(py: Python<'_>) -> PyResult<String> {
    let file: String = py.import("os")?.getattr("__file__")?.extract()?;
    Ok(file.trim_end_matches("os.py").to_string())
}
