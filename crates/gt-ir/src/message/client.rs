//! Messages between a client and the server.

use std::time::Duration;

use bytes::Bytes;

use super::{Failure, kinds};
use crate::command::{ClientCommand, Kept};
use crate::data::Content;
use crate::event::{EmitLevel, Event};
use crate::explain::{Explanation, PlacedTensor};
use crate::ids::SessionId;
use crate::instruction::{RequestId, SourceId};
use crate::operation::Meta;
use crate::record;
use crate::statistics::WorkerStats;
use crate::status::Status;
use crate::status::inspection::HeldTensors;
use crate::stored::Written;

/// The size in bytes from which a value is large: clients acknowledge the receipt of large values.
pub const LARGE_VALUE: u64 = 64 << 10;

/// From a client to the server.
#[derive(Clone, PartialEq, Debug)]
pub enum ClientToServer {
    /// Commands of the session, in program order.
    Stream(Vec<ClientCommand>),
    /// The client waits for credit: it has sent all that it has issued.
    AwaitCredit,
    /// The client has received a large value ([`LARGE_VALUE`]): the server may send others.
    Received { request: RequestId },
    /// The answer to [`ServerToClient::Confirm`].
    Confirmed { snapshot: u64 },
    /// The client has mapped a shared block; its owner may release it.
    Release { token: u128 },
    /// The immediate answer to [`ServerToClient::Observe`]; `here` is the time of the client's
    /// clock.
    Observed { sent: Duration, here: Duration },
    /// Events, in times of the client's clock; `dropped` more were lost.
    Events { events: Vec<Event>, dropped: u64 },
    /// The answer to [`ServerToClient::Lines`]: texts such as `train.py:12`.
    Lines { lines: Vec<(SourceId, String)> },
    /// The session is to end, also if it has a name.
    End,
    /// The answer to [`ServerToClient::ListHeld`]; the server fills in the time.
    Held(Box<HeldTensors>),
}

record!(enum ClientToServer {
    1 => Stream(commands),
    2 => AwaitCredit,
    3 => Received { request },
    4 => Confirmed { snapshot },
    5 => Release { token },
    6 => Observed { sent, here },
    7 => Events { events, dropped },
    8 => Lines { lines },
    9 => End,
    10 => Held(held),
});

/// From the server to a client.
#[derive(Clone, PartialEq, Debug)]
pub enum ServerToClient {
    /// Returns credit: commands of this weight are complete.
    Credit(u64),
    Answer(Answer),
    /// A worker has undone a step of the session.
    StepUndone(Box<Failure>),
    /// A notice to the user about the session.
    Notice {
        text: String,
    },
    /// Requests the confirmation that the client has received all messages before this one.
    Confirm {
        snapshot: u64,
    },
    /// The receiver has mapped a shared block of the client's; the client may release it.
    Release {
        token: u128,
    },
    /// Sets what the client emits: events, or nothing, as it has no reports. `sent` is the server's
    /// time.
    Observe {
        level: EmitLevel,
        sent: Duration,
    },
    /// Asks for the texts of lines of the user's program, for people who watch.
    Lines {
        lines: Vec<SourceId>,
    },
    /// Asks for the largest tensors that the user's program holds, for people who watch.
    ListHeld,
}

record!(enum ServerToClient {
    1 => Credit(weight),
    2 => Answer(answer),
    3 => StepUndone(failure),
    4 => Notice { text },
    5 => Confirm { snapshot },
    6 => Release { token },
    7 => Observe { level, sent },
    8 => Lines { lines },
    9 => ListHeld,
});

/// The answer to a client's request.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    pub request: RequestId,
    pub result: Result<Reply, Failure>,
}

record!(struct Answer { request, result });

impl Answer {
    /// Returns the answer to a request that succeeded.
    pub fn new(request: RequestId, reply: Reply) -> Answer {
        Answer { request, result: Ok(reply) }
    }

    /// Returns the answer with a value, or its failure.
    pub fn value(request: RequestId, result: Result<Content, Failure>) -> Answer {
        Answer { request, result: result.map(Reply::Value) }
    }
}

impl From<Answer> for ServerToClient {
    fn from(answer: Answer) -> ServerToClient {
        ServerToClient::Answer(answer)
    }
}

/// What a request returns.
#[derive(Clone, PartialEq, Debug)]
pub enum Reply {
    /// The values of a fetched tensor.
    Value(Content),
    /// The blocks that a save has written, on all workers.
    Saved(Vec<Written>),
    /// The statistics of all workers.
    Statistics(Vec<WorkerStats>),
    /// The end of an explanation, and its beginning, which is empty.
    Explained(Explanation),
    /// The copies of a tensor.
    Located(Vec<PlacedTensor>),
    Status(Box<Status>),
    /// All that the session keeps, sorted by name.
    Kept(Vec<Kept>),
    /// The session continues without its client.
    Detached,
    /// The name, with user and version, of what is being published.
    Published {
        name: String,
    },
    /// A publication, which the session may read from now on.
    Found(Box<FoundPublication>),
    /// The number of versions that were withdrawn.
    Withdrawn {
        versions: u32,
    },
}

record!(enum Reply {
    1 => Value(content),
    2 => Saved(written),
    3 => Statistics(workers),
    4 => Explained(explanation),
    5 => Located(copies),
    6 => Status(status),
    7 => Kept(kept),
    8 => Detached,
    9 => Published { name },
    10 => Found(found),
    11 => Withdrawn { versions },
});

/// A publication, as its readers find it.
#[derive(Clone, PartialEq, Debug)]
pub struct FoundPublication {
    pub publication: SessionId,
    /// The full name: `user/name@version`.
    pub name: String,
    pub structure: Bytes,
    pub tensors: Vec<Meta>,
}

record!(struct FoundPublication { publication, name, structure, tensors });

kinds!(ClientToServer, ServerToClient);
