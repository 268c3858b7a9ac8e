//! Commands: the elements of a client's stream to the dispatcher, and of a lane's stream to a
//! worker.
//!
//! - [`kept`]: tensors that sessions hold under names; [`numbers`]: where a stream begins.
//!
//! They are two types, so that a command that is not allowed on a stream cannot be expressed.

mod kept;
mod numbers;
mod publish;

use std::sync::Arc;

use crate::data::Content;
use crate::exchange::Exchange;
use crate::ids::{SessionId, WorkerId};
use crate::instruction::{Instruction, RequestId, SourceId, TensorId};
use crate::record;
use crate::signal::Shard;
use crate::snapshot::Snapshot;
use crate::stored::{Save, SavePart};
use crate::template::{Definition, Invocation};
use crate::wire::{Decoded, MadeTensor, Record, Sink, Source};

pub use kept::{Detach, Kept, KeptTensor};
pub use numbers::StreamNumbers;
pub use publish::Publish;

/// More tensors than an iteration of a template makes.
const MAX_MADE: u64 = 1 << 24;

/// A command of a client to the dispatcher.
#[derive(Clone, PartialEq, Debug)]
pub enum ClientCommand {
    /// Compute an operation.
    Run(Instruction),
    /// Create a tensor from data.
    Create(Create),
    /// Free a tensor.
    Free(TensorId),
    /// Reply with a tensor's value; `line` is the user's line, for errors.
    Fetch { request: RequestId, tensor: TensorId, line: SourceId },
    /// Write tensors into files; answered by [`crate::message::Reply::Saved`].
    Save(Box<Save>),
    /// Withdraw a request. Overtakes queued commands.
    Cancel { request: RequestId },
    /// Define the signal of a number before its first use, or redefine it.
    Signal { number: u32, name: String, shard: Option<Shard> },
    /// Reply with statistics once all earlier commands are done.
    Statistics { request: RequestId },
    /// Start recording plans, or stop and reply with the recording.
    Explain { request: RequestId, begin: bool },
    /// Reply with a tensor's placement.
    Locate { request: RequestId, tensor: TensorId },
    /// Reply with the status of the dispatcher, its workers and its sessions.
    Status { request: RequestId },
    /// Fail redistributions of more than `limit` bytes, unless a scope or a reduction requires
    /// them.
    Strict { limit: Option<u64> },
    /// Define a template. Nothing is computed.
    Define(Box<Definition>),
    /// Drop a template.
    Forget { template: u32 },
    /// Compute an iteration of a template, or a part of one.
    Invoke(Box<Invocation>),
    /// Set how many slots the session has, and whether workers that join add some. The last command of
    /// its batch.
    Rescale(Rescale),
    /// Keep tensors under a name, instead of those that the name had.
    Keep(Box<Kept>),
    /// Keep nothing under a name any more.
    Unkeep { name: String },
    /// Reply with what is kept.
    Kept { request: RequestId },
    /// Name the session, so that it continues without its client. The last command of its batch;
    /// takes effect on receipt.
    Detach(Box<Detach>),
    /// Free all tensors that are not kept, and forget templates and signals: the client is gone.
    Abandon,
    /// Publish tensors.
    Publish(Box<Publish>),
    /// Reply with a publication, once it can be read. The name may lack the user and the version.
    Find { request: RequestId, name: String },
    /// Withdraw a publication of the user's, or all of its versions.
    Withdraw { request: RequestId, name: String },
}

record!(enum ClientCommand {
    1 => Run(instruction),
    2 => Create(create),
    3 => Free(tensor),
    4 => Fetch { request, tensor, line },
    5 => Cancel { request },
    6 => Signal { number, name, shard },
    7 => Statistics { request },
    8 => Explain { request, begin },
    9 => Locate { request, tensor },
    10 => Status { request },
    11 => Strict { limit },
    12 => Define(definition),
    13 => Forget { template },
    14 => Invoke(invocation),
    15 => Save(save),
    16 => Rescale(rescale),
    17 => Keep(kept),
    18 => Unkeep { name },
    19 => Kept { request },
    20 => Detach(detach),
    21 => Abandon,
    22 => Publish(publish),
    23 => Find { request, name },
    24 => Withdraw { request, name },
});

/// The number of a session's slots, and whether workers that join add some; `None` leaves a setting
/// unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Rescale {
    pub slots: Option<u32>,
    pub elastic: Option<bool>,
}

record!(struct Rescale { slots, elastic });

impl Rescale {
    /// The most slots that a session may have.
    pub const MOST: u32 = 4096;

    /// Returns `given` as a number of slots if a session may have that many.
    pub fn count(given: impl TryInto<u32>) -> Option<u32> {
        given.try_into().ok().filter(|count| (1..=Rescale::MOST).contains(count))
    }
}

/// A command of the dispatcher to a lane of a worker.
#[derive(Clone, PartialEq, Debug)]
pub enum WorkerCommand {
    /// Compute an operation. Slots whose parts are equal share the instruction.
    Run(Arc<Instruction>),
    /// Create a tensor from data.
    Create(Box<Create>),
    /// Free a tensor.
    Free(TensorId),
    /// Reply with a tensor's value, in shared memory if `shared`; `line` is the user's line, for
    /// errors.
    Fetch { request: RequestId, tensor: TensorId, shared: bool, line: SourceId },
    /// Write blocks into a file; answered by [`crate::message::Reply::Saved`].
    Save(Box<SavePart>),
    /// Reply with statistics.
    Statistics { request: RequestId },
    /// Exchange blocks with other slots of the session.
    Exchange(Box<Exchange>),
    /// The worker of each slot of the session, from now on.
    Slots(Vec<WorkerId>),
    /// Define a template, replacing any other with its number.
    Define(Box<Definition>),
    /// Compute an iteration of a template. The invocation is the same for all slots.
    Invoke(Arc<Invocation>),
    /// Store the values of all tensors on this worker, and a copy elsewhere.
    Snapshot(Box<Snapshot>),
    /// Restore the values of a snapshot, as the first command of a restored lane. They are stored
    /// on this worker if `is_here`, and otherwise in flight to it.
    Restore { session: SessionId, snapshot: u64, is_here: bool },
}

record!(enum WorkerCommand {
    1 => Run(instruction),
    2 => Create(create),
    3 => Free(tensor),
    4 => Fetch { request, tensor, shared, line },
    5 => Statistics { request },
    6 => Exchange(exchange),
    7 => Slots(workers),
    8 => Define(definition),
    9 => Invoke(invocation),
    10 => Save(part),
    11 => Snapshot(snapshot),
    12 => Restore { session, snapshot, is_here },
});

/// A tensor made from data, in a signal's scope (0 for none).
#[derive(Clone, PartialEq, Debug)]
pub struct Create {
    pub output: TensorId,
    pub content: Content,
    pub signal: u32,
    /// The user's line that created it.
    pub source: SourceId,
}

impl Record for Create {
    fn write<S: Sink>(&self, to: &mut S) {
        MadeTensor(self.output).write(to);
        self.content.write(to);
        self.signal.write(to);
        self.source.write(to);
    }

    fn read(from: &mut Source) -> Decoded<Create> {
        let output = MadeTensor::read(from)?.0;
        let (content, signal) = (Record::read(from)?, Record::read(from)?);
        Ok(Create { output, content, signal, source: Record::read(from)? })
    }
}

impl Create {
    /// Grows with the data, so that a window bounds memory. The workers have published values.
    fn weight(&self) -> u64 {
        if matches!(self.content, Content::Published(_)) {
            return 1;
        }
        1 + (self.content.meta().bytes() >> 14) as u64
    }
}

impl ClientCommand {
    /// Returns its weight in flow control.
    pub fn weight(&self) -> u64 {
        match self {
            ClientCommand::Create(create) => create.weight(),
            ClientCommand::Define(definition) => definition.weight(),
            ClientCommand::Invoke(invocation) => invocation.weight(),
            // Grows with what the server stores, so that a window bounds it.
            ClientCommand::Keep(kept) => 1 + (kept.bytes() >> 14) as u64,
            ClientCommand::Publish(publish) => 1 + (publish.bytes() >> 14) as u64,
            _ => 1,
        }
    }

    /// Returns whether it concerns only the current state, and so overtakes queued commands.
    pub fn is_momentary(&self) -> bool {
        matches!(
            self,
            ClientCommand::Status { .. } | ClientCommand::Cancel { .. } | ClientCommand::Detach(_)
        )
    }

    /// Returns the id of the request that it makes, if any.
    pub fn request(&self) -> Option<RequestId> {
        match self {
            ClientCommand::Fetch { request, .. }
            | ClientCommand::Statistics { request }
            | ClientCommand::Explain { request, .. }
            | ClientCommand::Locate { request, .. }
            | ClientCommand::Status { request }
            | ClientCommand::Kept { request }
            | ClientCommand::Find { request, .. }
            | ClientCommand::Withdraw { request, .. } => Some(*request),
            ClientCommand::Publish(publish) => Some(publish.request),
            ClientCommand::Detach(detach) => Some(detach.request),
            ClientCommand::Save(save) => Some(save.request),
            _ => None,
        }
    }

    /// Returns the (first) tensor that it makes, if any.
    pub fn made(&self) -> Option<TensorId> {
        match self {
            ClientCommand::Run(instruction) => Some(instruction.output),
            ClientCommand::Create(create) => Some(create.output),
            _ => None,
        }
    }

    /// Returns a number after those of all tensors that it makes, if it makes any.
    pub fn after_made(&self) -> Option<u64> {
        match self {
            ClientCommand::Run(instruction) => {
                Some(instruction.output.0.saturating_add(instruction.results.len() as u64))
            }
            ClientCommand::Create(create) => Some(create.output.0.saturating_add(1)),
            ClientCommand::Invoke(invocation) => {
                Some(invocation.bases[0].0.saturating_add(MAX_MADE))
            }
            _ => None,
        }
    }
}

impl WorkerCommand {
    /// Returns its weight in flow control.
    pub fn weight(&self) -> u64 {
        match self {
            WorkerCommand::Create(create) => create.weight(),
            WorkerCommand::Define(definition) => definition.weight(),
            WorkerCommand::Invoke(invocation) => invocation.weight(),
            _ => 1,
        }
    }
}
