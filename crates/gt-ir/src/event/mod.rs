//! What happens, and when: the one stream that the log, `gt top` and traces are made from.
//!
//! Clients, the dispatcher and workers emit events while somebody watches. Instructions of one kind
//! that follow one another are one event, so that watching costs little.

mod activity;

use std::time::Duration;

use crate::command::{ClientCommand, WorkerCommand};
use crate::exchange::{Collective, SlotId, TransferId, WorkerId};
use crate::instruction::TensorId;
use crate::operation::Operation;
use crate::record;
use crate::wire::{Decoded, Record, Sink, Source};

pub use activity::{Activity, Mix};

/// Something that has happened. Times are on the dispatcher's clock; on their way to it, on their
/// maker's.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Event {
    pub begin: Duration,
    pub end: Duration,
    pub kind: EventKind,
    /// Where it happened.
    pub track: Track,
    /// Whose it was; 0 for nobody's.
    pub session: u32,
    /// The signal's number, as its client counts them; 0 for none.
    pub signal: u32,
    pub what: What,
    /// How many instructions it stands for, and how many of them failed.
    pub count: u32,
    pub failed: u32,
    /// The first tensor that was made, moved or asked for, as its client names it.
    pub tensor: TensorId,
    /// Of the tensors that were made, moved or asked for; on links, of the message.
    pub bytes: u64,
}

/// Of its end, only how long after its beginning it is.
impl Record for Event {
    fn write<S: Sink>(&self, to: &mut S) {
        self.begin.write(to);
        self.end.saturating_sub(self.begin).write(to);
        self.kind.write(to);
        self.track.write(to);
        self.session.write(to);
        self.signal.write(to);
        self.what.write(to);
        self.count.write(to);
        self.failed.write(to);
        self.tensor.write(to);
        self.bytes.write(to);
    }

    fn read(from: &mut Source) -> Decoded<Event> {
        let begin = Duration::read(from)?;
        Ok(Event {
            begin,
            end: begin.saturating_add(Duration::read(from)?),
            kind: Record::read(from)?,
            track: Record::read(from)?,
            session: Record::read(from)?,
            signal: Record::read(from)?,
            what: Record::read(from)?,
            count: Record::read(from)?,
            failed: Record::read(from)?,
            tensor: Record::read(from)?,
            bytes: Record::read(from)?,
        })
    }
}

impl Event {
    /// About a batch of a session that stands for so many instructions.
    pub fn of_batch(
        kind: EventKind,
        track: Track,
        session: u32,
        count: u64,
        (begin, end): (Duration, Duration),
    ) -> Event {
        Event {
            begin,
            end,
            kind,
            track,
            session,
            signal: 0,
            what: What::Batch { mix: Mix::default() },
            count: u32::try_from(count).unwrap_or(u32::MAX),
            failed: 0,
            tensor: TensorId(0),
            bytes: 0,
        }
    }
}

/// A step on the way of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum EventKind {
    /// A client has gathered instructions and sends them.
    Issue,
    /// The dispatcher has received them from the client,
    Receive,
    /// has let them wait until workers had room,
    Queue,
    /// has found out where they run,
    Plan,
    /// and has sent them to a worker.
    Dispatch,
    /// A worker has run them.
    Run,
    /// A worker has sent a block to another one, or taken one.
    Move,
    /// A worker has made a sequence ready to be run as one.
    Compile,
    /// The dispatcher has passed a value on to the client.
    Answer,
}

record!(enum EventKind {
    0 => Issue,
    1 => Receive,
    2 => Queue,
    3 => Plan,
    4 => Dispatch,
    5 => Run,
    6 => Move,
    7 => Compile,
    8 => Answer,
});

impl EventKind {
    pub const ALL: [EventKind; 9] = [
        EventKind::Issue,
        EventKind::Receive,
        EventKind::Queue,
        EventKind::Plan,
        EventKind::Dispatch,
        EventKind::Run,
        EventKind::Move,
        EventKind::Compile,
        EventKind::Answer,
    ];
}

/// Where something happens.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Track {
    /// The client of the event's session.
    Client,
    Dispatcher,
    Worker(WorkerId),
}

record!(enum Track { 0 => Client, 1 => Dispatcher, 2 => Worker(worker) });

/// What an event is about.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum What {
    /// Commands of several kinds; of operations that are run as one, what they consist of.
    Batch {
        mix: Mix,
    },
    Operation(&'static Operation),
    /// A tensor's data comes,
    Create,
    /// is asked for,
    Fetch,
    /// is let go of.
    Free,
    /// An iteration of a sequence that repeats, by its number and what it consists of.
    HotPath {
        number: u32,
        mix: Mix,
    },
    /// A block goes to another slot,
    Send {
        collective: Collective,
        transfer: TransferId,
        to: SlotId,
    },
    /// or has come from it.
    Receive {
        transfer: TransferId,
        from: SlotId,
    },
    /// Blocks are exchanged by an engine that joins workers.
    Join {
        collective: Collective,
    },
    /// Whatever else is sent: definitions, questions.
    Control,
}

record!(enum What {
    0 => Batch { mix },
    1 => Operation(operation),
    2 => Create,
    3 => Fetch,
    4 => Free,
    5 => HotPath { number, mix },
    6 => Send { collective, transfer, to },
    7 => Receive { transfer, from },
    8 => Control,
    9 => Join { collective },
});

/// What a command is about, for its event.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Subject {
    pub what: What,
    /// The signal it was issued in; 0 for none.
    pub signal: u32,
    /// The tensor that it makes or asks for.
    pub tensor: TensorId,
}

impl Subject {
    const CONTROL: Subject = Subject { what: What::Control, signal: 0, tensor: TensorId(0) };

    /// What a client's command is about.
    pub fn of_client(command: &ClientCommand) -> Subject {
        match command {
            ClientCommand::Run(instruction) => {
                let what = What::Operation(instruction.operation);
                Subject { what, signal: instruction.signal, tensor: instruction.output }
            }
            ClientCommand::Create(create) => {
                Subject { what: What::Create, signal: create.signal, tensor: create.output }
            }
            ClientCommand::Fetch { tensor, .. } => {
                Subject { what: What::Fetch, signal: 0, tensor: *tensor }
            }
            ClientCommand::Free(tensor) => Subject { what: What::Free, signal: 0, tensor: *tensor },
            ClientCommand::Invoke(invocation) => {
                let what = What::HotPath { number: invocation.template, mix: Mix::default() };
                Subject { what, signal: 0, tensor: invocation.bases[0] }
            }
            _ => Subject::CONTROL,
        }
    }

    /// What a worker's command is about.
    pub fn of_worker(command: &WorkerCommand) -> Subject {
        match command {
            WorkerCommand::Run(instruction) => {
                let what = What::Operation(instruction.operation);
                Subject { what, signal: instruction.signal, tensor: instruction.output }
            }
            WorkerCommand::Create(create) => {
                Subject { what: What::Create, signal: create.signal, tensor: create.output }
            }
            WorkerCommand::Fetch { tensor, .. } => {
                Subject { what: What::Fetch, signal: 0, tensor: *tensor }
            }
            WorkerCommand::Free(tensor) => Subject { what: What::Free, signal: 0, tensor: *tensor },
            WorkerCommand::Invoke(invocation) => {
                let what = What::HotPath { number: invocation.template, mix: Mix::default() };
                Subject { what, signal: 0, tensor: invocation.bases[0] }
            }
            WorkerCommand::Exchange(exchange) => {
                let made = exchange.output.map(|(output, _)| output);
                let tensor = made.or(exchange.input).unwrap_or(TensorId(0));
                Subject { tensor, ..Subject::CONTROL }
            }
            _ => Subject::CONTROL,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_stand_at_their_places() {
        assert!(EventKind::ALL.iter().enumerate().all(|(place, kind)| *kind as usize == place));
    }
}
