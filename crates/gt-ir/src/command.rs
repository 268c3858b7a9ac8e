//! Streams: what a client tells the dispatcher to do, and the dispatcher a worker.
//!
//! The two are types of their own, so that what one may not be told cannot be written down.

use std::sync::Arc;

use crate::data::Content;
use crate::exchange::{Exchange, WorkerId};
use crate::instruction::{Instruction, RequestId, SourceId, TensorId};
use crate::record;
use crate::signal::Shard;
use crate::template::{Definition, Invocation};
use crate::wire::{Decoded, Made, Record, Sink, Source};

/// What a client puts on its stream to the dispatcher.
#[derive(Clone, PartialEq, Debug)]
pub enum ClientCommand {
    /// Compute.
    Run(Instruction),
    /// Make a tensor from data.
    Create(Create),
    /// Forget a tensor.
    Free(TensorId),
    /// Answer with a tensor's value, for this line.
    Fetch { request: RequestId, tensor: TensorId, line: SourceId },
    /// Nobody waits for the answer to a request any more. It overtakes what waits.
    Cancel { request: RequestId },
    /// Say what a signal's number means; sent before its first use and when that changes.
    Signal { number: u32, name: String, shard: Option<Shard> },
    /// Answer with statistics, once all that came before is done.
    Statistics { request: RequestId },
    /// Begin to record what is planned; or end it, and answer with what was.
    Explain { request: RequestId, begin: bool },
    /// Answer with a tensor's placement.
    Locate { request: RequestId, tensor: TensorId },
    /// Answer with how the dispatcher, its workers and its sessions are.
    Status { request: RequestId },
    /// Make moves of more bytes than this errors, unless a scope or a sum asks for them.
    Strict { limit: Option<u64> },
    /// A sequence that may be invoked from now on. Nothing is computed.
    Define(Box<Definition>),
    /// Forget a sequence.
    Forget { template: u32 },
    /// Compute an iteration of a sequence, or a part of one.
    Invoke(Box<Invocation>),
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
});

/// What a worker does for one lane: a session's worker slot.
#[derive(Clone, PartialEq, Debug)]
pub enum WorkerCommand {
    /// Compute. What many slots do alike is written once.
    Run(Arc<Instruction>),
    /// Make a tensor from data.
    Create(Box<Create>),
    /// Forget a tensor.
    Free(TensorId),
    /// Answer with a tensor's value, for this line; by shared memory if the asker can read it.
    Fetch { request: RequestId, tensor: TensorId, shared: bool, line: SourceId },
    /// Answer with statistics.
    Statistics { request: RequestId },
    /// Exchange blocks with other slots of the session.
    Exchange(Box<Exchange>),
    /// Which worker each slot of the session is on from now on.
    Slots(Vec<WorkerId>),
    /// A sequence that may be invoked from now on, in place of another of its number.
    Define(Box<Definition>),
    /// Compute an iteration of a sequence. It is the same for all workers.
    Invoke(Arc<Invocation>),
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
});

/// A tensor made from data, in a signal's scope (0 for none).
#[derive(Clone, PartialEq, Debug)]
pub struct Create {
    pub output: TensorId,
    pub content: Content,
    pub signal: u32,
}

impl Record for Create {
    fn write<S: Sink>(&self, to: &mut S) {
        Made(self.output).write(to);
        self.content.write(to);
        self.signal.write(to);
    }

    fn read(from: &mut Source) -> Decoded<Create> {
        let output = Made::read(from)?.0;
        Ok(Create { output, content: Record::read(from)?, signal: Record::read(from)? })
    }
}

impl Create {
    /// Counts its data, so that a window bounds memory.
    fn weight(&self) -> u64 {
        1 + (self.content.meta().bytes() >> 14) as u64
    }
}

impl ClientCommand {
    /// What it counts in flow control.
    pub fn weight(&self) -> u64 {
        match self {
            ClientCommand::Create(create) => create.weight(),
            ClientCommand::Define(definition) => definition.weight(),
            ClientCommand::Invoke(invocation) => invocation.weight(),
            _ => 1,
        }
    }

    /// The question that it asks, if it asks one.
    pub fn request(&self) -> Option<RequestId> {
        match self {
            ClientCommand::Fetch { request, .. }
            | ClientCommand::Statistics { request }
            | ClientCommand::Explain { request, .. }
            | ClientCommand::Locate { request, .. }
            | ClientCommand::Status { request } => Some(*request),
            _ => None,
        }
    }

    /// The tensor that it makes, if it makes one.
    pub fn made(&self) -> Option<TensorId> {
        match self {
            ClientCommand::Run(instruction) => Some(instruction.output),
            ClientCommand::Create(create) => Some(create.output),
            _ => None,
        }
    }
}

impl WorkerCommand {
    /// What it counts in flow control.
    pub fn weight(&self) -> u64 {
        match self {
            WorkerCommand::Create(create) => create.weight(),
            WorkerCommand::Define(definition) => definition.weight(),
            WorkerCommand::Invoke(invocation) => invocation.weight(),
            _ => 1,
        }
    }
}
