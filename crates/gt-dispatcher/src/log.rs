//! The instruction log: a line for everything that passes.
//!
//! `1.608s | #0011 | RECV         | CLIENT 006b8b4568           | BinaryOp        |       117B | result=2 op=add left=0 right=1`

use std::fmt::Write;
use std::time::Duration;

use gt_ir::event::{Event, Kind, Lane, What};
use gt_ir::exchange::{Collective, Exchange, Origin};
use gt_ir::message::Named;
use gt_ir::{Command, Operand, WorkerId};

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
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

impl Entry {
    const fn name(self) -> &'static str {
        match self {
            Entry::Connect => "CONNECT",
            Entry::Disconnect => "DISCONNECT",
            Entry::Recv => "RECV",
            Entry::Send => "SEND",
            Entry::WorkerSend => "WORKER_SEND",
            Entry::WorkerRecv => "WORKER_RECV",
            Entry::Error => "ERROR",
            Entry::Issue => "ISSUE",
            Entry::Queue => "QUEUE",
            Entry::Plan => "PLAN",
            Entry::Move => "MOVE",
            Entry::Compile => "COMPILE",
        }
    }

    const fn of(kind: Kind) -> Entry {
        match kind {
            Kind::Issue => Entry::Issue,
            Kind::Receive => Entry::Recv,
            Kind::Queue => Entry::Queue,
            Kind::Plan => Entry::Plan,
            Kind::Dispatch => Entry::WorkerSend,
            Kind::Run => Entry::WorkerRecv,
            Kind::Move => Entry::Move,
            Kind::Compile => Entry::Compile,
            Kind::Answer => Entry::Send,
        }
    }

    const fn party(self) -> &'static str {
        match self {
            Entry::WorkerSend | Entry::WorkerRecv | Entry::Move | Entry::Compile => "WORKER",
            _ => "CLIENT",
        }
    }
}

/// Takes each finished line, without its newline.
pub type Sink = Box<dyn FnMut(&str) + Send>;

/// A name as one word: what would break lines, fields or terminals is an underscore in it.
pub fn word(name: &str) -> String {
    let breaks = |letter: char| letter.is_control() || letter.is_whitespace() || letter == '|';
    name.chars().take(64).map(|letter| if breaks(letter) { '_' } else { letter }).collect()
}

/// Numbers and formats lines.
pub struct Log {
    sink: Sink,
    sequence: u64,
    line: String,
}

impl Log {
    pub fn new(sink: Sink) -> Log {
        Log { sink, sequence: 0, line: String::new() }
    }

    /// A line about anything.
    pub fn write(
        &mut self,
        now: Duration,
        event: Entry,
        party: &str,
        command: &str,
        bytes: usize,
        details: std::fmt::Arguments,
    ) {
        self.sequence += 1;
        self.line.clear();
        let source = format!("{} {party}", event.party());
        // Writing to a string cannot fail.
        let _ = write!(
            self.line,
            "{:.3}s | #{:04} | {:<12} | {source:<27} | {command:<15} | {:>10} | {details}",
            now.as_secs_f64(),
            self.sequence,
            event.name(),
            format!("{bytes}B"),
        );
        // Reasons have hints on lines of their own.
        if self.line.contains(char::is_control) {
            self.line = self.line.replace(char::is_control, " ");
        }
        (self.sink)(&self.line);
    }

    /// A line about a command; on its way to a worker its name has the prefix `Worker`.
    pub fn command(&mut self, now: Duration, event: Entry, party: &str, command: &Command) {
        let mut name = String::new();
        if event.party() == "WORKER" {
            name.push_str("Worker");
        }
        name.push_str(command_name(command));
        self.write(
            now,
            event,
            party,
            &name,
            command.wire_bytes(),
            format_args!("{}", Details(command)),
        );
    }
}

impl Log {
    /// The lines of a pass of a hot path: its start, what it stands for, its end.
    pub fn hot_path(
        &mut self,
        now: Duration,
        event: Entry,
        party: &str,
        invocation: &Command,
        commands: &[Command],
    ) {
        self.command(now, event, party, invocation);
        commands.iter().for_each(|command| self.command(now, event, party, command));
        self.hot_path_end(now, event, party, invocation);
    }

    fn hot_path_end(&mut self, now: Duration, event: Entry, party: &str, invocation: &Command) {
        let number = match invocation {
            Command::Invoke(invocation) => invocation.template,
            Command::Play(play) => play.script,
            _ => return,
        };
        let name = if event.party() == "WORKER" { "WorkerHotPathEnd" } else { "HotPathEnd" };
        self.write(now, event, party, name, 0, format_args!("number={number}"));
    }
}

impl Log {
    /// A line about an event, for whose parties there are names.
    pub fn event(&mut self, now: Duration, event: &Event, name: &dyn Fn(Named) -> Option<String>) {
        let entry = Entry::of(event.kind);
        let party = match event.lane {
            Lane::Worker(worker) => name(Named::Worker(worker)),
            Lane::Client | Lane::Dispatcher => name(Named::Session(event.session)),
        };
        let party = party.unwrap_or_else(|| "unknown".into());
        let prefix = if entry.party() == "WORKER" { "Worker" } else { "" };
        let command = format!("{prefix}{}", event_name(event.kind, event.what));
        let details = EventDetails { event, name };
        let bytes = event.bytes as usize;
        self.write(now, entry, &party, &command, bytes, format_args!("{details}"));
    }
}

/// What an event is about, by the names of commands.
fn event_name(kind: Kind, what: What) -> &'static str {
    match what {
        What::Batch { .. } => "Batch",
        What::Operation(operation) => operation.family.log_name(),
        What::Create => "CreateTensor",
        // The value's own line is another.
        What::Fetch if kind == Kind::Run => "Read",
        What::Fetch => "GetData",
        What::Free => "FreeTensor",
        What::HotPath { .. } => "HotPath",
        What::Send { collective, .. } => collective_name(collective),
        What::Receive { .. } => "Receive",
        What::Join { collective } => collective_name(collective),
        What::Control => "Control",
    }
}

/// What there is to say of an event.
struct EventDetails<'a> {
    event: &'a Event,
    name: &'a dyn Fn(Named) -> Option<String>,
}

impl std::fmt::Display for EventDetails<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Event { kind, session, signal, what, count, failed, tensor, .. } = *self.event;
        let of_worker = |worker| (self.name)(Named::Worker(worker)).unwrap_or_default();
        match kind {
            Kind::Run | Kind::Answer => {
                write!(f, "success={} ", if failed == 0 { "True" } else { "False" })?;
            }
            _ => {}
        }
        match what {
            What::Operation(operation) => write!(f, "result={tensor} op={}", operation.name)?,
            What::Create => write!(f, "result={tensor}")?,
            What::Fetch | What::Free => write!(f, "tensor={tensor}")?,
            What::HotPath { number, .. } => write!(f, "number={number} result={tensor}")?,
            What::Send { collective, transfer, to } => {
                let (name, to) = (collective.name(), of_worker(to));
                write!(f, "op={name} to={to} transfer={}", transfer.0)?;
            }
            What::Receive { transfer, from } => {
                write!(f, "from={} transfer={}", of_worker(from), transfer.0)?;
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
        if !matches!(what, What::Batch { .. } | What::Control) && session != 0 {
            write!(f, " session={session}")?;
        }
        let (begin, end) = (self.event.begin.as_secs_f64(), self.event.end.as_secs_f64());
        if kind_takes_time(kind) { write!(f, " begin={begin:.9} end={end:.9}") } else { Ok(()) }
    }
}

/// Whether an event of a kind lasts: others are moments.
const fn kind_takes_time(kind: Kind) -> bool {
    !matches!(kind, Kind::Receive | Kind::Dispatch | Kind::Answer)
}

const fn collective_name(collective: Collective) -> &'static str {
    match collective {
        Collective::AllGather => "AllGather",
        Collective::ReduceScatter => "ReduceScatter",
        Collective::AllReduce => "AllReduce",
        Collective::AllToAll => "AllToAll",
        Collective::Broadcast => "Broadcast",
        Collective::Send => "Send",
    }
}

/// The names that users grep for.
fn command_name(command: &Command) -> &'static str {
    match command {
        Command::Run(instruction) => instruction.operation.family.log_name(),
        Command::Create { .. } => "CreateTensor",
        Command::Fetch { .. } => "GetData",
        Command::Free(_) => "FreeTensor",
        Command::EndSession { .. } => "EndSession",
        Command::Signal { .. } => "Signal",
        Command::Stats { .. } => "GetStats",
        Command::Describe { .. } => "Describe",
        Command::Explain { .. } => "Explain",
        Command::Locate { .. } => "Locate",
        Command::Strict { .. } => "Strict",
        Command::Status { .. } => "GetStatus",
        Command::Exchange(exchange) => collective_name(exchange.collective),
        Command::Define(_) => "DefineHotPath",
        Command::Invoke(_) | Command::Play(_) => "HotPathStart",
        Command::Script(_) => "DefineHotPath",
    }
}

fn exchange_details(f: &mut std::fmt::Formatter<'_>, exchange: &Exchange) -> std::fmt::Result {
    write!(f, "op={}", exchange.collective.name())?;
    if let Some((output, meta)) = &exchange.output {
        write!(f, " result={} shape={}", output.split().1, meta.shape)?;
    }
    if let Some(input) = exchange.input {
        write!(f, " input={}", input.split().1)?;
    }
    let workers =
        |ids: Vec<WorkerId>| ids.iter().map(WorkerId::to_string).collect::<Vec<_>>().join(",");
    let to = exchange.sends.iter().map(|(to, _)| *to).collect();
    let from = exchange.sources.iter().filter_map(|source| match source.from {
        Origin::Worker(worker) => Some(worker),
        Origin::Own(_) => None,
    });
    write!(f, " to=[{}] from=[{}]", workers(to), workers(from.collect()))?;
    match &exchange.joint {
        Some(joint) => write!(f, " by={}", joint.kind),
        None => Ok(()),
    }
}

struct Details<'a>(&'a Command);

impl std::fmt::Display for Details<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Command::Run(instruction) => {
                write!(
                    f,
                    "result={} op={}",
                    instruction.output.split().1,
                    instruction.operation.name
                )?;
                const NAMES: [&str; 3] = ["left", "right", "third"];
                let single = instruction.operands.len() == 1;
                for (index, operand) in instruction.operands.iter().enumerate() {
                    let name = if single { "input" } else { NAMES.get(index).unwrap_or(&"more") };
                    match operand {
                        Operand::Tensor(id) => write!(f, " {name}={}", id.split().1)?,
                        Operand::Scalar(scalar) => write!(f, " {name}=scalar({scalar})")?,
                    }
                }
                for (spec, value) in
                    instruction.operation.attributes.iter().zip(&instruction.attributes)
                {
                    write!(f, " {}={value}", spec.name)?;
                }
                if instruction.signal != 0 {
                    write!(f, " signal={}", instruction.signal)?;
                }
                Ok(())
            }
            Command::Create { output, content, signal } => {
                let meta = content.meta();
                let name = output.split().1;
                write!(f, "result={name} dtype={} shape={}", meta.dtype, meta.shape)?;
                if *signal != 0 {
                    write!(f, " signal={signal}")?;
                }
                Ok(())
            }
            Command::Fetch { tensor, .. } => write!(f, "tensor={}", tensor.split().1),
            Command::Free(tensor) => write!(f, "tensor={}", tensor.split().1),
            Command::EndSession { session } | Command::Describe { session } => {
                write!(f, "session={session}")
            }
            Command::Signal { number, name, shard } => {
                write!(f, "signal={number} name={}", word(name))?;
                match shard {
                    Some(shard) => write!(f, " placement={shard}"),
                    None => Ok(()),
                }
            }
            Command::Stats { .. } | Command::Status { .. } => Ok(()),
            Command::Explain { begin, .. } => write!(f, "begin={begin}"),
            Command::Locate { tensor, .. } => write!(f, "tensor={}", tensor.split().1),
            Command::Strict { limit } => write!(f, "limit={limit:?}"),
            Command::Exchange(exchange) => exchange_details(f, exchange),
            Command::Define(definition) => {
                write!(f, "template={} operations={}", definition.number, definition.steps.len())
            }
            Command::Script(script) => {
                write!(f, "script={} operations={}", script.number, script.steps.len())
            }
            Command::Play(play) => {
                write!(f, "script={} operations={}", play.script, play.weight)?;
                write!(f, " result={}", play.bases[0].split().1)
            }
            Command::Invoke(invocation) => {
                let count = invocation.last - invocation.first;
                write!(f, "template={} operations={count}", invocation.template)?;
                write!(f, " first={} result={}", invocation.first, invocation.base.split().1)
            }
        }
    }
}
