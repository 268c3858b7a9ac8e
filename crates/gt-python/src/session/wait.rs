//! Waiting for a session, and making room before an instruction.

use gt::{ClientError, Session, Tensor};
use pyo3::prelude::*;

use super::{current, exit};
use crate::engine;
use crate::error::{from_python, to_python};
use crate::notice::WaitNotice;

/// Runs what takes its time without the GIL. At the end of the process only the main thread comes
/// back.
pub fn detached<T: Send>(py: Python<'_>, act: impl Send + FnOnce() -> T) -> T {
    // With Python's lock comes what was left to be dropped, engines' tensors among it.
    let (result, _inside) = py.detach(|| (act(), engine::ExitGuard::enter()));
    result
}

/// Runs what may wait for a session, without the GIL; a signal such as Ctrl-C ends the wait.
pub fn waiting<T: Send>(
    py: Python<'_>,
    session: &Session,
    wait: impl Send + FnOnce(&mut dyn FnMut() -> bool) -> gt::Result<T>,
) -> PyResult<T> {
    let mut raised = None;
    let result = detached(py, || {
        let mut notice = WaitNotice::new();
        // At the interpreter's end there are no signals to look for.
        let mut interrupt = || match Python::try_attach(|py| py.check_signals()).unwrap_or(Ok(())) {
            Ok(()) => {
                notice.poll(session);
                false
            }
            Err(error) => {
                raised = Some(error);
                true
            }
        };
        wait(&mut interrupt)
    });
    match (result, raised) {
        (Err(ClientError::Interrupted), Some(error)) => Err(error),
        (result, _) => result.or_else(|error| at_exit(py, error)),
    }
}

/// An error for Python; but at the end of the process, where Python's own threads just stop,
/// one that lost its session stops, too, instead of complaining.
pub fn at_exit<T>(py: Python<'_>, error: ClientError) -> PyResult<T> {
    if matches!(error, ClientError::Connection(_)) {
        exit::park_if_stranded(py);
    }
    Err(to_python(error))
}

/// Waits for room in the window, if there is none; called before each instruction.
fn throttle(py: Python<'_>, session: &Session) -> PyResult<()> {
    if session.is_full() {
        waiting(py, session, |interrupt| session.wait_for_room(interrupt))?;
    }
    Ok(())
}

/// Waits for room in the window within a call that issues many instructions, such as a backward
/// pass. The interpreter's lock is given up where this thread holds it.
pub fn make_room(session: &Session) -> gt::Result<()> {
    match Python::try_attach(|py| throttle(py, session)) {
        Some(done) => done.map_err(from_python),
        None => session.wait_for_room(&mut || false),
    }
}

/// Waits until a tensor's session is ready to take an instruction.
pub fn ready(py: Python<'_>, tensor: &Tensor) -> PyResult<()> {
    if tensor.session_is_full() {
        throttle(py, &tensor.session())?;
    }
    Ok(())
}

/// The session of a tensor, ready to take an instruction.
pub fn ready_session(py: Python<'_>, tensor: &Tensor) -> PyResult<Session> {
    ready(py, tensor)?;
    Ok(tensor.session())
}

/// The current session, ready to take an instruction.
pub fn ready_current(py: Python<'_>) -> PyResult<Session> {
    let session = current()?;
    throttle(py, &session)?;
    Ok(session)
}

/// Waits until all that was issued to a session is computed.
pub fn synchronize(py: Python<'_>, session: &Session) -> PyResult<()> {
    waiting(py, session, |interrupt| session.worker_stats(interrupt)).map(drop)
}
