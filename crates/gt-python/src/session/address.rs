//! The address and the key file of a server, as users pass them.

use std::path::PathBuf;

use gt::environment;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

/// How addresses begin that a tunnel leads to, which `gt.session.tunnel` opens.
const TUNNELS: [&str; 3] = ["ssh://", "https://", "http://"];

/// Returns the address and the key file of a server, for the function `name`. A cluster has its own.
pub fn parse_server(
    name: &str,
    given: &Bound<'_, PyAny>,
    key_file: Option<Bound<'_, PyAny>>,
) -> PyResult<(String, Option<PathBuf>)> {
    let address = parse_address(name, given)?;
    let is_cluster = !given.is_instance_of::<PyString>();
    let key_file = match key_file {
        None if is_cluster => given.getattr_opt("key_file")?,
        key_file => key_file,
    };
    let key_file = parse_key_file(name, &address, key_file)?;
    Ok((address, key_file))
}

/// Returns an address, for the function `name`: that of a cluster, or the local one of a tunnel to a
/// server that ssh reaches, or the port of its page.
fn parse_address(name: &str, address: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = address.cast::<PyString>() {
        let text: String = text.extract()?;
        return match TUNNELS.iter().any(|scheme| text.starts_with(scheme)) {
            true => {
                let py = address.py();
                let open = py.import("gt.session.tunnel")?.getattr("open_tunnel")?;
                let opened = open.call1((text,)).inspect_err(|error| {
                    // The user has called `connect`: the lines of what opens tunnels say nothing.
                    if !environment::is_set("GT_FULL_TRACEBACK") {
                        error.set_traceback(py, None);
                    }
                });
                opened?.extract()
            }
            false => Ok(text),
        };
    }
    if address.hasattr("scale")? {
        return address.getattr("address")?.extract();
    }
    let hint = match address.cast::<PyInt>() {
        Ok(port) => format!("gt.{name}('localhost:{port}')"),
        Err(_) => format!("gt.{name}('HOST:PORT')"),
    };
    Err(PyTypeError::new_err(format!(
        "{name}: the address is {}, expected a string 'HOST:PORT', 'ipc:///PATH', 'file:///PATH', 'ssh://LOGIN' or 'https://HOST', or a cluster\n  hint: {hint}",
        address.repr()?
    )))
}

/// Returns the path of a key file, for the function `name`.
pub fn parse_key_file(
    name: &str,
    address: &str,
    key_file: Option<Bound<'_, PyAny>>,
) -> PyResult<Option<PathBuf>> {
    let Some(given) = key_file else { return Ok(None) };
    if let Ok(path) = given.extract() {
        return Ok(Some(path));
    }
    let hint = match given.cast::<PyInt>() {
        Ok(port) => format!("the port belongs to the address: gt.{name}('{address}:{port}')"),
        Err(_) => format!("gt.{name}('{address}', key_file='PATH')"),
    };
    Err(PyTypeError::new_err(format!(
        "{name}: the key file is {}, expected a path\n  hint: {hint}",
        given.repr()?
    )))
}
