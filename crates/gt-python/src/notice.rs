//! A wait of more than two seconds says, on a terminal or in a notebook, what it waits for.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use gt::Session;
use gt_tools::words;
use pyo3::prelude::*;

/// After how long the first notice comes, each further one, and how they grow apart.
const FIRST: Duration = Duration::from_secs(2);
const GROWTH: u32 = 5;
const MOST: Duration = Duration::from_secs(60);
/// How long the dispatcher may take to say how it is.
const ANSWER: Duration = Duration::from_millis(500);

/// The notices of one wait.
pub struct WaitNotice {
    began: Option<Instant>,
    next: Duration,
}

impl WaitNotice {
    pub fn new() -> WaitNotice {
        WaitNotice { began: None, next: FIRST }
    }

    /// Says what the wait is for, if it is time to. Called now and then, without Python's lock.
    pub fn poll(&mut self, session: &Session) {
        // Short waits need no clock: they are over before this is called.
        let waited = self.began.get_or_insert_with(Instant::now).elapsed();
        if waited < self.next {
            return;
        }
        self.next = (waited * GROWTH).min(waited + MOST);
        let text = || format!("gt: waiting for {:.0} s: {}", waited.as_secs_f64(), reason(session));
        if std::io::stderr().is_terminal() {
            eprintln!("{}", text());
        } else if Python::try_attach(is_notebook).unwrap_or(false) {
            let text = text();
            // Where it cannot be shown, the wait goes on without.
            let _ = Python::try_attach(|py| show(py, &text));
        }
    }
}

/// Whether this is the kernel of a notebook, whose `sys.stderr` is shown below the cell that runs.
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
    // Asked with Python's lock held: whoever forks meanwhile finds no lock of ours taken.
    let asked = Python::attach(|_| session.ask_status());
    let until = Instant::now() + ANSWER;
    let status = asked.and_then(|asked| asked.wait(&mut || Instant::now() > until));
    match status {
        Ok(status) => words::asker_waits(&status),
        Err(_) => format!("{} does not answer", session.describe()),
    }
}
