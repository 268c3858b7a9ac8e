//! One client: its tensors, its queue and its requests.

use std::collections::VecDeque;
use std::time::Duration;

use gt_ir::{Command, RequestId};

use crate::dispatcher::PeerId;
use crate::planner::Tensors;

pub(crate) struct Session {
    pub peer: PeerId,
    /// Its number, which stands in the upper bits of its tensors' ids on workers.
    pub number: u32,
    /// As the log shows it.
    pub label: String,
    /// Equal to another's where both can share memory.
    pub machine: String,
    /// The worker at which its tensors begin.
    pub home: Option<PeerId>,
    /// The workers of its last batch.
    pub busy: Vec<PeerId>,
    pub tensors: Tensors,
    /// False while its worker is asked for its tensors.
    pub is_described: bool,
    /// Batches that no worker has room for yet.
    pub queue: VecDeque<Vec<Command>>,
    /// The weight of what it has sent and has not got back yet.
    pub open: u64,
    /// Since when it waits for a worker to appear.
    pub waiting_since: Option<Duration>,
}

impl Session {
    pub fn new(
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
            machine,
            home: None,
            busy: Vec::new(),
            tensors: Tensors::new(number, generation),
            is_described: true,
            queue: VecDeque::new(),
            open: 0,
            waiting_since: None,
        }
    }
}

/// A request under way, by the number that the dispatcher gave it.
pub(crate) struct Request {
    /// Who asked, and under which number.
    pub client: PeerId,
    pub original: RequestId,
    pub worker: PeerId,
}
