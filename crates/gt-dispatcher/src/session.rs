//! One client: its tensors, its queue and its requests.

use std::collections::VecDeque;
use std::time::Duration;

use gt_ir::{Command, RequestId, TensorId};

use crate::dispatcher::PeerId;
use crate::planner::{Passes, Tensors};
use crate::templates::Templates;

pub(crate) struct Session {
    pub peer: PeerId,
    /// Its number, which stands in the upper bits of its tensors' ids on workers.
    pub number: u32,
    /// As the log shows it.
    pub label: String,
    /// When it began, and how many instructions have come since.
    pub since: Duration,
    pub instructions: u64,
    /// Equal to another's where both can share memory.
    pub machine: String,
    /// The worker at which its tensors begin.
    pub home: Option<PeerId>,
    /// The workers of its last batch.
    pub busy: Vec<PeerId>,
    pub tensors: Tensors,
    pub templates: Templates,
    pub passes: Passes,
    /// False while its worker is asked for its tensors.
    pub is_described: bool,
    /// Batches that no worker has room for yet.
    pub queue: VecDeque<Queued>,
    /// The weight of what it has sent and has not got back yet.
    pub open: u64,
    /// Since when it waits for a worker to appear.
    pub waiting_since: Option<Duration>,
}

impl Session {
    pub fn new(
        now: Duration,
        peer: PeerId,
        number: u32,
        generation: u64,
        label: String,
        machine: String,
    ) -> Session {
        Session {
            peer,
            number,
            label,
            since: now,
            instructions: 0,
            machine,
            home: None,
            busy: Vec::new(),
            tensors: Tensors::new(number, generation),
            templates: Templates::default(),
            passes: Passes::default(),
            is_described: true,
            queue: VecDeque::new(),
            open: 0,
            waiting_since: None,
        }
    }
}

/// A batch that waits for room at the workers.
pub(crate) struct Queued {
    pub commands: Vec<Command>,
    /// What the client gets back when the batch is done with.
    pub weight: u64,
    pub since: Duration,
}

impl Queued {
    /// Commands of this weight have been taken out; gives what of it the client gets back now.
    /// That is all once nothing is left: what templates stand for weighs otherwise than they do.
    pub fn give_up(&mut self, weight: u64) -> u64 {
        let given = if self.commands.is_empty() { self.weight } else { weight.min(self.weight) };
        self.weight -= given;
        given
    }
}

/// A request under way, by the number that the dispatcher gave it.
pub(crate) struct Request {
    /// Who asked, and under which number.
    pub client: PeerId,
    pub original: RequestId,
    pub worker: PeerId,
    /// What is asked for, as the client names it, and since when.
    pub tensor: TensorId,
    pub since: Duration,
}
