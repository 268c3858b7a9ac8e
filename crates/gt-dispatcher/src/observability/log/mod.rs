//! The instruction log: one line for each command and event that passes the dispatcher.
//!
//! `1.608s | #0011 | RECV         | CLIENT 006b8b4568           | BinaryOp        |       117B | result=2 op=add left=0 right=1`

mod details;

use std::fmt::Write;
use std::time::Duration;

use gt_ir::event::{Event, EventKind, Track, What};
use gt_ir::message::Named;
use gt_ir::wire::Record;
use gt_ir::{ClientCommand, SessionId, SlotId, WorkerCommand};

use super::watchers::hot_path;
use details::{ClientDetails, WorkerDetails, client_name, collective_name, worker_name};

/// The kind field of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineKind {
    Connect,
    Disconnect,
    Recv,
    Send,
    WorkerSend,
    WorkerRecv,
    Error,
    Issue,
    Queue,
    Plan,
    Move,
    Compile,
}

impl LineKind {
    const fn name(self) -> &'static str {
        match self {
            LineKind::Connect => "CONNECT",
            LineKind::Disconnect => "DISCONNECT",
            LineKind::Recv => "RECV",
            LineKind::Send => "SEND",
            LineKind::WorkerSend => "WORKER_SEND",
            LineKind::WorkerRecv => "WORKER_RECV",
            LineKind::Error => "ERROR",
            LineKind::Issue => "ISSUE",
            LineKind::Queue => "QUEUE",
            LineKind::Plan => "PLAN",
            LineKind::Move => "MOVE",
            LineKind::Compile => "COMPILE",
        }
    }

    const fn of(kind: EventKind) -> LineKind {
        match kind {
            EventKind::Issue => LineKind::Issue,
            EventKind::Receive => LineKind::Recv,
            EventKind::Queue => LineKind::Queue,
            EventKind::Plan => LineKind::Plan,
            EventKind::Dispatch => LineKind::WorkerSend,
            EventKind::Run | EventKind::Recover => LineKind::WorkerRecv,
            EventKind::Move => LineKind::Move,
            EventKind::Compile => LineKind::Compile,
            EventKind::Answer => LineKind::Send,
        }
    }

    const fn party(self) -> &'static str {
        match self {
            LineKind::WorkerSend | LineKind::WorkerRecv | LineKind::Move | LineKind::Compile => {
                "WORKER"
            }
            _ => "CLIENT",
        }
    }
}

/// Receives each finished line, without its newline.
pub type LineSink = Box<dyn FnMut(&str) + Send>;

/// Numbers and formats lines.
pub struct Log {
    sink: LineSink,
    sequence: u64,
    line: String,
}

impl Log {
    /// Creates a log whose lines go to `sink`.
    pub fn new(sink: LineSink) -> Log {
        Log { sink, sequence: 0, line: String::new() }
    }

    /// Writes a line about anything.
    pub fn write(
        &mut self,
        now: Duration,
        event: LineKind,
        party: &str,
        command: &str,
        bytes: usize,
        details: std::fmt::Arguments,
    ) {
        self.sequence += 1;
        self.line.clear();
        // The name of a session is one word here: fields of lines have always been split at spaces.
        let source = format!("{} {}", event.party(), party.replace(' ', "/"));
        // Writing to a string cannot fail.
        let _ = write!(
            self.line,
            "{:.3}s | #{:04} | {:<12} | {source:<27} | {command:<15} | {:>10} | {details}",
            now.as_secs_f64(),
            self.sequence,
            event.name(),
            format!("{bytes}B"),
        );
        // Error messages may have hints on lines of their own.
        if self.line.contains(char::is_control) {
            self.line = self.line.replace(char::is_control, " ");
        }
        (self.sink)(&self.line);
    }

    /// Writes a line about a client's command.
    pub fn client_command(&mut self, now: Duration, party: &str, command: &ClientCommand) {
        let (kind, name, bytes) = (LineKind::Recv, client_name(command), command.length());
        self.write(now, kind, party, name, bytes, format_args!("{}", ClientDetails(command)));
        if let ClientCommand::Invoke(invocation) = command {
            let details = format_args!("number={}", invocation.template);
            self.write(now, kind, party, "HotPathEnd", 0, details);
        }
    }

    /// Writes a line about a command sent to a worker, its name prefixed with `Worker`. An
    /// invocation is followed by `expansion`, the commands of its iteration.
    pub fn worker_command(
        &mut self,
        now: Duration,
        party: &str,
        command: &WorkerCommand,
        expansion: &[WorkerCommand],
    ) {
        let (kind, bytes) = (LineKind::WorkerSend, command.length());
        let name = format!("Worker{}", worker_name(command));
        self.write(now, kind, party, &name, bytes, format_args!("{}", WorkerDetails(command)));
        if let WorkerCommand::Invoke(invocation) = command {
            expansion.iter().for_each(|step| self.worker_command(now, party, step, &[]));
            let details = format_args!("number={}", invocation.template);
            self.write(now, kind, party, "WorkerHotPathEnd", 0, details);
        }
    }
}

impl Log {
    /// Writes a line about an event, with names resolved by `name`.
    pub fn event(&mut self, now: Duration, event: &Event, name: &dyn Fn(Named) -> Option<String>) {
        let kind = LineKind::of(event.kind);
        let party = match event.track {
            Track::Worker(worker) => name(Named::Worker(worker)),
            Track::Client | Track::Dispatcher => name(Named::Session(event.session)),
        };
        let party = party.unwrap_or_else(|| "unknown".into());
        let prefix = if kind.party() == "WORKER" { "Worker" } else { "" };
        let command = format!("{prefix}{}", event_name(event.kind, event.what));
        let details = EventDetails { event, name };
        let bytes = event.bytes as usize;
        self.write(now, kind, &party, &command, bytes, format_args!("{details}"));
    }
}

/// Returns the command name for an event's subject.
fn event_name(kind: EventKind, what: What) -> &'static str {
    match what {
        What::Batch { .. } => "Batch",
        What::Operation(operation) => operation.family.log_name(),
        What::Create => "CreateTensor",
        // `GetData` is the line of the value that the dispatcher forwards.
        What::Fetch if kind == EventKind::Run => "Read",
        What::Fetch => "GetData",
        What::Free => "FreeTensor",
        What::HotPath { .. } => "HotPath",
        What::Send { collective, .. } => collective_name(collective),
        What::Receive { .. } => "Receive",
        What::Join { collective } => collective_name(collective),
        What::Control => "Control",
    }
}

/// The details field of an event's line.
struct EventDetails<'a> {
    event: &'a Event,
    name: &'a dyn Fn(Named) -> Option<String>,
}

impl std::fmt::Display for EventDetails<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Event { kind, session, signal, what, count, failed, tensor, .. } = *self.event;
        let on = |slot: SlotId| {
            let worker = (self.name)(Named::Slot { session, slot });
            worker.unwrap_or_else(|| slot.to_string())
        };
        match kind {
            EventKind::Run | EventKind::Answer => {
                write!(f, "success={} ", if failed == 0 { "True" } else { "False" })?;
            }
            _ => {}
        }
        match what {
            What::Operation(operation) => write!(f, "result={tensor} op={}", operation.name)?,
            What::Create => write!(f, "result={tensor}")?,
            What::Fetch | What::Free => write!(f, "tensor={tensor}")?,
            What::HotPath { number, .. } => {
                write!(f, "number={number} result={tensor}")?;
                if let Some(text) = (self.name)(hot_path(self.event, number)) {
                    write!(f, " {text}")?;
                }
            }
            What::Send { collective, transfer, to } => {
                write!(f, "op={} to={} transfer={}", collective.name(), on(to), transfer.0)?;
            }
            What::Receive { transfer, from } => {
                write!(f, "from={} transfer={}", on(from), transfer.0)?;
            }
            What::Join { collective } => write!(f, "op={} result={tensor}", collective.name())?,
            What::Batch { .. } | What::Control => write!(f, "session={session}")?,
        }
        if count != 1 {
            write!(f, " count={count}")?;
        }
        if failed > 0 {
            write!(f, " failed={failed}")?;
        }
        if signal != 0 {
            let name = (self.name)(Named::Signal { session, number: signal });
            write!(f, " signal={}", name.unwrap_or_else(|| signal.to_string()))?;
        }
        if !matches!(what, What::Batch { .. } | What::Control) && session != SessionId::NONE {
            write!(f, " session={session}")?;
        }
        let (begin, end) = (self.event.begin.as_secs_f64(), self.event.end.as_secs_f64());
        if kind_takes_time(kind) { write!(f, " begin={begin:.9} end={end:.9}") } else { Ok(()) }
    }
}

/// Returns whether events of a kind have a duration.
const fn kind_takes_time(kind: EventKind) -> bool {
    use EventKind::{Answer, Dispatch, Receive, Recover};
    !matches!(kind, Receive | Dispatch | Answer | Recover)
}
