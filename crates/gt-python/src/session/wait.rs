//! Waiting for sessions without the GIL, and for room in a session's window.

use gt::{ClientError, Session, Tensor};
use pyo3::prelude::*;

use super::{current, exit};
use crate::engine;
use crate::error::{from_python, to_python};
use crate::notice::WaitNotice;

/// Runs a slow function without the GIL. At process exit only the main thread returns.
pub fn detached<T: Send>(py: Python<'_>, act: impl Send + FnOnce() -> T) -> T {
    // Reacquiring the GIL drops objects whose drop was deferred, such as tensors of engines.
    let (result, _inside) = py.detach(|| (act(), engine::ExitGuard::enter()));
    result
}

/// Runs a function that may wait for a session, without the GIL; a signal such as Ctrl-C ends the
/// wait.
pub fn waiting<T: Send>(
    py: Python<'_>,
    session: &Session,
    wait: impl Send + FnOnce(&mut dyn FnMut() -> bool) -> gt::Result<T>,
) -> PyResult<T> {
    let mut raised = None;
    let result = detached(py, || {
        let mut notice = WaitNotice::new();
        // After interpreter shutdown there are no signals to check.
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

/// Converts an error to a Python exception. At process exit, a thread other than the main one that
/// has lost its session is parked instead, as Python's daemon threads stop silently, too.
pub fn at_exit<T>(py: Python<'_>, error: ClientError) -> PyResult<T> {
    if matches!(error, ClientError::Connection(_)) {
        exit::park_if_stranded(py);
    }
    Err(to_python(error))
}

/// Waits for room in the window if it is full; called before each instruction.
fn throttle(py: Python<'_>, session: &Session) -> PyResult<()> {
    if session.is_full() {
        waiting(py, session, |interrupt| session.wait_for_room(interrupt))?;
    }
    Ok(())
}

/// Waits for room in the window during a call that issues many instructions, such as a backward
/// pass. Releases the GIL meanwhile if this thread holds it.
pub fn make_room(session: &Session) -> gt::Result<()> {
    match Python::try_attach(|py| throttle(py, session)) {
        Some(done) => done.map_err(from_python),
        None => session.wait_for_room(&mut || false),
    }
}

/// Waits until a tensor's session can accept an instruction.
pub fn ready(py: Python<'_>, tensor: &Tensor) -> PyResult<()> {
    if tensor.session_is_full() {
        throttle(py, &tensor.session())?;
    }
    Ok(())
}

/// Returns the session of a tensor once it can accept an instruction.
pub fn ready_session(py: Python<'_>, tensor: &Tensor) -> PyResult<Session> {
    ready(py, tensor)?;
    Ok(tensor.session())
}

/// Returns the current session once it can accept an instruction.
pub fn ready_current(py: Python<'_>) -> PyResult<Session> {
    let session = current()?;
    throttle(py, &session)?;
    Ok(session)
}

/// Waits until all instructions issued to a session are computed.
pub fn synchronize(py: Python<'_>, session: &Session) -> PyResult<()> {
    waiting(py, session, |interrupt| session.worker_stats(interrupt)).map(drop)
}
