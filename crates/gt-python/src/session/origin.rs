//! The name of this process's program, under which its sessions are shown.

use gt::SessionOrigin;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Returns the origin of a session: with the name that the user gives it in a call of `function`,
/// or else that of the script, the module or the notebook that runs.
pub fn origin(
    py: Python<'_>,
    function: &str,
    name: Option<&Bound<'_, PyAny>>,
) -> PyResult<SessionOrigin> {
    let Some(name) = name else {
        let program = py.import("gt.session.program")?.call_method0("program_name")?;
        return Ok(gt::origin(Some(program.extract()?)));
    };
    Ok(gt::origin(Some(session_name(function, name)?)))
}

/// Returns the name of a session that the user gives in a call of `function`.
pub fn session_name(function: &str, name: &Bound<'_, PyAny>) -> PyResult<String> {
    let text = name.cast::<PyString>().map_err(|_| {
        let given = name.repr().map(|text| text.to_string()).unwrap_or_default();
        PyTypeError::new_err(format!(
            "{function}: name is {given}, expected a string such as 'run-12'"
        ))
    })?;
    let checked = SessionOrigin::check(&text.to_cow()?);
    checked.map_err(|error| PyValueError::new_err(format!("{function}: {error}")))
}
