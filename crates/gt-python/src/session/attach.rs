//! Sessions that outlive their program: keeping tensors under names, detaching and attaching.

use std::sync::Arc;

use gt::ir::Attach;
use gt::{KeptName, SessionOrigin, Tensor};
use pyo3::exceptions::{PyConnectionError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use super::address::{parse_key_file, parse_server};
use super::current::{self, UsedSession};
use super::default::{open_connection, optional_flag, refuse_in_block};
use super::fork::ForkBlocker;
use super::handle::{ServerTarget, SessionHandle};
use super::origin::{origin, session_name};
use super::wait::{self, detached, waiting};
use crate::error::IntoPython;
use crate::tensor::PyTensor;

/// Keep tensors of this thread's session under a name, with the structure around them.
#[pyfunction]
fn keep_tensors(
    py: Python<'_>,
    name: &str,
    structure: Vec<u8>,
    tensors: Vec<Py<PyTensor>>,
) -> PyResult<()> {
    KeptName::check(name).map_err(PyValueError::new_err)?;
    let session = wait::ready_current(py)?;
    let tensors: Vec<Tensor> = tensors.iter().map(|tensor| tensor.get().0.clone()).collect();
    session.keep(name, structure.into(), &tensors).py()
}

/// Keep nothing under a name any more; return whether there was anything.
#[pyfunction]
fn unkeep(py: Python<'_>, name: &str) -> PyResult<bool> {
    wait::ready_current(py)?.unkeep(name).py()
}

/// Return the structure and the tensors that this thread's session keeps under a name, or None.
#[pyfunction]
fn kept_tensors<'py>(
    py: Python<'py>,
    name: &str,
) -> PyResult<Option<(Bound<'py, PyBytes>, Vec<PyTensor>)>> {
    let kept = wait::ready_current(py)?.kept(name);
    Ok(kept.map(|kept| {
        let tensors = kept.tensors.into_iter().map(PyTensor).collect();
        (PyBytes::new(py, &kept.structure), tensors)
    }))
}

/// Return the names under which this thread's session keeps anything, each with the number of
/// tensors and their bytes.
#[pyfunction]
fn list_kept(py: Python<'_>) -> PyResult<Vec<(String, usize, u64)>> {
    let kept = wait::ready_current(py)?.list_kept();
    Ok(kept.into_iter().map(|kept| (kept.name, kept.tensors, kept.bytes)).collect())
}

/// Continue with a session that was detached, or whose program has ended, on a server.
///
/// New tensors of this thread belong to it from now on, as after `gt.connect`; the tensors of the
/// session before stay in that one.
///
///     if gt.attach("run-12", or_create=True):
///         state = gt.kept("state")
///
/// Args:
///     name: the name of the session, unique among those of its user.
///     or_create: begin the session if there is none of this name. If its program may have ended
///         just now, this waits up to 9 s until the server knows.
///     take_over: take the session from the program that has it, for which that is an error.
///     token: the token of a session that was detached as private.
///     address: the server, as for `gt.connect`; None for that of this thread's session.
///     key_file: file with the key for the server, as for `gt.connect`.
///     insecure: the server was started with `--insecure`.
///
/// Returns:
///     True if the session existed, also if this thread uses it already; False if it was begun.
///
/// Raises:
///     ConnectionError: no server answers, there is no session of this name, another program has
///         it, or the token is another one.
///     RuntimeError: called inside a `with` block of a session.
///     ValueError: the name is empty, too long, or has characters that cannot be shown; or the
///         token is not one that `gt.detach` returned.
#[pyfunction]
#[pyo3(
    signature = (name, or_create=None, *, take_over=None, token=None, address=None, key_file=None, insecure=None),
    text_signature = "(name, or_create=False, *, take_over=False, token=None, address=None, key_file=None, insecure=False)"
)]
#[allow(clippy::too_many_arguments, reason = "they are those of gt.attach")]
fn attach(
    py: Python<'_>,
    name: &Bound<'_, PyAny>,
    or_create: Option<&Bound<'_, PyAny>>,
    take_over: Option<&Bound<'_, PyAny>>,
    token: Option<&Bound<'_, PyAny>>,
    address: Option<Bound<'_, PyAny>>,
    key_file: Option<Bound<'_, PyAny>>,
    insecure: Option<&Bound<'_, PyAny>>,
) -> PyResult<bool> {
    refuse_in_block(py, "attach", "attach in another thread")?;
    let origin = origin(py, "attach", None)?;
    let attach = Attach {
        name: session_name("attach", name)?,
        or_create: optional_flag("attach", "or_create", or_create)?.unwrap_or(false),
        take_over: optional_flag("attach", "take_over", take_over)?.unwrap_or(false),
        token: token.map(|token| parse_token("attach", token)).transpose()?,
    };
    let server = server(py, "attach", address, key_file, insecure)?;
    if let Some(own) = current::used(py).handle()
        && !own.is_closed()
        && own.attached_name().as_deref() == Some(&attach.name)
        && own.server().is_some_and(|of| of.address == server.address)
    {
        // As when a notebook's cell runs again.
        return Ok(true);
    }
    let (handle, existed) = open_attached(py, origin, attach, server)?;
    current::set(py, handle);
    Ok(existed)
}

/// Opens a named session.
fn open_attached(
    py: Python<'_>,
    origin: SessionOrigin,
    attach: Attach,
    server: ServerTarget,
) -> PyResult<(Arc<SessionHandle>, bool)> {
    let seed = current::seed();
    let blocker = ForkBlocker::to_open(py)?;
    let (handle, existed) = SessionHandle::attach(py, &blocker, origin, attach, server, seed)?;
    drop(blocker);
    if existed && let Some(session) = handle.session() {
        waiting(py, &session, |interrupt| session.read_kept(interrupt))?;
    }
    Ok((handle, existed))
}

/// Leave this thread's session on its server under a name, with what `gt.keep` keeps in it, and
/// continue with a new one.
///
/// Its other tensors are freed: using them in this program is an error from then on. Any program of
/// the same user continues with it by `gt.attach`; on a server without users' keys, all programs are
/// of one user.
///
///     gt.keep("state", {"model": model.state_dict(), "step": step})
///     gt.detach("run-12")
///
/// Given a tensor, this returns `tensor.detach()`, as `torch.detach` does.
///
/// Args:
///     name: the name of the session, unique among those of its user; None for the name that it has
///         from `gt.attach`.
///     private: whether `gt.attach` needs the returned token. A private session stays private, with
///         its token.
///
/// Returns:
///     The token of a private session; otherwise None.
///
/// Raises:
///     ConnectionError: the session's workers run in this process, with which it ends; or the
///         connection is lost.
///     RuntimeError: called inside a `with` block of a session, the session is that of the main
///         thread, or another session has the name.
///     ValueError: the name is empty, too long, or has characters that cannot be shown.
#[pyfunction]
#[pyo3(
    signature = (name=None, *, private=None),
    text_signature = "(name=None, *, private=False)"
)]
fn detach(
    py: Python<'_>,
    name: Option<&Bound<'_, PyAny>>,
    private: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    if let Some(tensor) = name.filter(|name| name.is_instance_of::<PyTensor>()) {
        return Ok(tensor.call_method0("detach")?.unbind());
    }
    refuse_in_block(py, "detach", "connect by gt.connect instead")?;
    let private = optional_flag("detach", "private", private)?.unwrap_or(false);
    let handle = current::handle(py)?;
    if let UsedSession::Shared(handle) = current::used(py) {
        return Err(PyRuntimeError::new_err(format!(
            "detach: this thread uses the main thread's session ({})\n  hint: call gt.detach in the main thread, or gt.connect here first",
            handle.place()
        )));
    }
    let Some(server) = handle.server().cloned() else {
        return Err(PyConnectionError::new_err(format!(
            "detach: the session runs on {}, and ends with this process\n  hint: start a server with `gt server` and workers with `gt worker`, and call gt.connect(ADDRESS) first",
            handle.place()
        )));
    };
    let name = match (name, handle.attached_name()) {
        (Some(name), _) => session_name("detach", name)?,
        (None, Some(name)) => name,
        (None, None) => {
            return Err(PyTypeError::new_err(
                "detach: the session has no name yet\n  hint: gt.detach('run-12')",
            ));
        }
    };
    let session = handle.session().ok_or_else(|| {
        PyConnectionError::new_err(
            "detach: the session is closed\n  hint: gt.connect(ADDRESS) first",
        )
    })?;
    let token = private.then(gt::new_token);
    waiting(py, &session, |interrupt| session.detach(&name, token, interrupt))?;
    handle.close(py);
    let begun = open_connection(py, origin(py, "detach", None)?, &server);
    match begun {
        Ok(handle) => current::set(py, handle),
        Err(error) => {
            let text = format!(
                "detach: the session was detached as '{name}', but no new one could be begun: {}",
                error.value(py)
            );
            return Err(PyConnectionError::new_err(text));
        }
    }
    Ok(token.map(|token| format!("{token:032x}")).into_pyobject(py)?.unbind())
}

/// End a session by its name, also while another program has it.
#[pyfunction]
#[pyo3(signature = (name, token=None, address=None, key_file=None, insecure=None))]
fn end_session(
    py: Python<'_>,
    name: &Bound<'_, PyAny>,
    token: Option<&Bound<'_, PyAny>>,
    address: Option<Bound<'_, PyAny>>,
    key_file: Option<Bound<'_, PyAny>>,
    insecure: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let (origin, name) = (origin(py, "sessions end", None)?, session_name("sessions end", name)?);
    let token = token.map(|token| parse_token("sessions end", token)).transpose()?;
    let attach = Attach { name, or_create: false, take_over: true, token };
    let ServerTarget { address, key_file, insecure } =
        server(py, "sessions end", address, key_file, insecure)?;
    let ended = detached(py, || {
        gt::attach(origin, &address, key_file.as_deref(), insecure, attach)
            .map(|(session, _)| session.end())
    });
    ended.py()
}

/// Returns the server that is given, or else that of this thread's session.
fn server(
    py: Python<'_>,
    call: &str,
    address: Option<Bound<'_, PyAny>>,
    key_file: Option<Bound<'_, PyAny>>,
    insecure: Option<&Bound<'_, PyAny>>,
) -> PyResult<ServerTarget> {
    let given = optional_flag(call, "insecure", insecure)?;
    if let Some(address) = address {
        let (address, key_file) = parse_server(call, &address, key_file)?;
        return Ok(ServerTarget { address, key_file, insecure: given.unwrap_or(false) });
    }
    let used = current::used(py).handle();
    let mut server = used.and_then(|handle| handle.server().cloned()).ok_or_else(|| {
        PyConnectionError::new_err(format!(
            "{call}: this program has not connected to a server\n  hint: gt.connect(ADDRESS) first, or gt.{call}(NAME, address='HOST:PORT')"
        ))
    })?;
    if let Some(key_file) = key_file {
        server.key_file = parse_key_file(call, &server.address, Some(key_file))?;
    }
    server.insecure = given.unwrap_or(server.insecure);
    Ok(server)
}

/// Returns a token, as `gt.detach` returns it.
fn parse_token(call: &str, token: &Bound<'_, PyAny>) -> PyResult<u128> {
    let wrong = |shown: String| {
        PyValueError::new_err(format!(
            "{call}: the token is {shown}, expected the 32 hexadecimal digits that gt.detach returned"
        ))
    };
    let Ok(text) = token.cast::<PyString>() else {
        return Err(wrong(format!("a {}", token.get_type().name()?)));
    };
    let text: String = text.extract()?;
    let is_hexadecimal = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let value = u128::from_str_radix(&text, 16).ok().filter(|_| is_hexadecimal);
    // What was given may be a secret with a typing error.
    value.ok_or_else(|| wrong(format!("a text of {} characters", text.chars().count())))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(keep_tensors, module)?)?;
    module.add_function(wrap_pyfunction!(unkeep, module)?)?;
    module.add_function(wrap_pyfunction!(kept_tensors, module)?)?;
    module.add_function(wrap_pyfunction!(list_kept, module)?)?;
    module.add_function(wrap_pyfunction!(attach, module)?)?;
    module.add_function(wrap_pyfunction!(detach, module)?)?;
    module.add_function(wrap_pyfunction!(end_session, module)?)
}
