//! Events: the timestamped record from which the log, `gt top` and traces are made.
//!
//! Clients, the dispatcher and workers emit events while a watcher is connected or a log is
//! written. Consecutive small instructions of one kind are one event, so that the overhead is
//! small.

mod activity;

use std::time::Duration;

use crate::command::{ClientCommand, WorkerCommand};
use crate::exchange::Collective;
use crate::ids::{SessionId, SlotId, TransferId, WorkerId};
use crate::instruction::TensorId;
use crate::operation::Operation;
use crate::record;
use crate::wire::{Decoded, Record, Sink, Source};

pub use activity::{Activity, Mix};

/// Something that happened. Times are of the dispatcher's clock; in messages to the dispatcher, of
/// the emitter's clock.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Event {
    pub begin: Duration,
    pub end: Duration,
    pub kind: EventKind,
    /// Where it happened.
    pub track: Track,
    /// The session that it belongs to, or [`SessionId::NONE`].
    pub session: SessionId,
    /// The signal's number, as its client counts them; 0 for none.
    pub signal: u32,
    pub what: What,
    /// The number of instructions that it stands for.
    pub count: u32,
    /// How many of these failed.
    pub failed: u32,
    /// The first tensor that was made, exchanged or fetched.
    pub tensor: TensorId,
    /// The bytes of the tensors made, exchanged or fetched; for events of links, of the commands.
    pub bytes: u64,
}

/// The end is encoded as a duration.
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
    /// Returns an event about a batch of `count` instructions.
    pub fn of_batch(
        kind: EventKind,
        track: Track,
        session: SessionId,
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

/// What clients and workers emit for those who watch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EmitLevel {
    Nothing,
    /// Workers emit reports, with counters.
    Reports,
    /// They and clients emit events, too.
    Events,
}

record!(enum EmitLevel { 0 => Nothing, 1 => Reports, 2 => Events });

/// A stage in the life of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum EventKind {
    /// The client has collected a batch of instructions and sends it.
    Issue,
    /// The dispatcher has received it.
    Receive,
    /// The batch has waited until workers had room.
    Queue,
    /// The dispatcher has planned it.
    Plan,
    /// The dispatcher has sent a worker its commands.
    Dispatch,
    /// A worker has run instructions.
    Run,
    /// A worker has sent or received a block.
    Move,
    /// A worker has prepared a plan.
    Compile,
    /// The dispatcher has forwarded a value to the client.
    Answer,
    /// The dispatcher rebuilds a session whose worker or server was lost, from the batches that it
    /// has kept.
    Recover,
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
    9 => Recover,
});

impl EventKind {
    pub const ALL: [EventKind; 10] = [
        EventKind::Issue,
        EventKind::Receive,
        EventKind::Queue,
        EventKind::Plan,
        EventKind::Dispatch,
        EventKind::Run,
        EventKind::Move,
        EventKind::Compile,
        EventKind::Answer,
        EventKind::Recover,
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

/// The subject of an event.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum What {
    /// Commands of several kinds; if they are run as one plan, with its mix of activities.
    Batch {
        mix: Mix,
    },
    Operation(&'static Operation),
    /// A tensor is created from data.
    Create,
    /// A tensor's value is fetched.
    Fetch,
    /// A tensor is freed.
    Free,
    /// An iteration of a hot path, by its number, with its mix of activities.
    HotPath {
        number: u32,
        mix: Mix,
    },
    /// A block is sent to another slot.
    Send {
        collective: Collective,
        transfer: TransferId,
        to: SlotId,
    },
    /// A block is received from another slot.
    Receive {
        transfer: TransferId,
        from: SlotId,
    },
    /// A collective.
    Join {
        collective: Collective,
    },
    /// Any other command, such as definitions and requests.
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

/// A command's contribution to its event.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Subject {
    pub what: What,
    /// The signal that it was issued in; 0 for none.
    pub signal: u32,
    /// The tensor that it makes, fetches or frees.
    pub tensor: TensorId,
}

impl Subject {
    const CONTROL: Subject = Subject { what: What::Control, signal: 0, tensor: TensorId(0) };

    /// The subject of a client's command.
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

    /// The subject of a worker's command.
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
