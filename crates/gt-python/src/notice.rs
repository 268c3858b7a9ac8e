//! Messages about long waits: after two seconds, a terminal or notebook shows what the wait is for.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use gt::Session;
use gt_tools::words;
use pyo3::prelude::*;

/// The delay before the first message. Each later one appears after [`GROWTH`] times the time
/// waited so far, but at most [`MAX_INTERVAL`] after the previous one.
const FIRST: Duration = Duration::from_secs(2);
const GROWTH: u32 = 5;
const MAX_INTERVAL: Duration = Duration::from_secs(60);
/// How long the dispatcher may take to return its status.
const STATUS_TIMEOUT: Duration = Duration::from_millis(500);

/// The messages of one wait.
pub struct WaitNotice {
    began: Option<Instant>,
    next: Duration,
}

impl WaitNotice {
    pub fn new() -> WaitNotice {
        WaitNotice { began: None, next: FIRST }
    }

    /// Shows what the wait is for, if a message is due. Called repeatedly, without the GIL.
    pub fn poll(&mut self, session: &Session) {
        // The clock starts here: short waits end before the first call and never read it.
        let waited = self.began.get_or_insert_with(Instant::now).elapsed();
        if waited < self.next {
            return;
        }
        self.next = (waited * GROWTH).min(waited + MAX_INTERVAL);
        let text = || format!("gt: waiting for {:.0} s: {}", waited.as_secs_f64(), reason(session));
        if std::io::stderr().is_terminal() {
            eprintln!("{}", text());
        } else if Python::try_attach(is_notebook).unwrap_or(false) {
            let text = text();
            // If it cannot be shown, the wait continues without it.
            let _ = Python::try_attach(|py| show(py, &text));
        }
    }
}

/// Whether this process is a notebook kernel, which shows `sys.stderr` below the running cell.
fn is_notebook(py: Python<'_>) -> bool {
    let modules = py.import("sys").and_then(|sys| sys.getattr("modules"));
    modules.and_then(|modules| modules.contains("ipykernel")).unwrap_or(false)
}

fn show(py: Python<'_>, text: &str) -> PyResult<()> {
    let stderr = py.import("sys")?.getattr("stderr")?;
    stderr.call_method1("write", (format!("{text}\n"),))?;
    stderr.call_method0("flush").map(drop)
}

fn reason(session: &Session) -> String {
    // The GIL is held, so no other thread can fork while this call holds a lock of the session.
    let asked = Python::attach(|_| session.ask_status());
    let until = Instant::now() + STATUS_TIMEOUT;
    let status = asked.and_then(|asked| asked.wait(&mut || Instant::now() > until));
    match status {
        Ok(status) => words::asker_waits(&status),
        Err(_) => format!("{} does not answer", session.describe()),
    }
}
