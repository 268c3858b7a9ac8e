//! One client's name space, its queue and its requests.

use std::collections::VecDeque;
use std::time::Duration;

use gt_ir::{Command, RequestId, TensorId};
use rustc_hash::FxHashMap;

use crate::dispatcher::PeerId;
use crate::handle::TensorHandle;

pub(crate) struct Session {
    pub peer: PeerId,
    /// Its number, which stands in the upper bits of its tensors' ids on workers.
    pub number: u32,
    /// As the log shows it.
    pub label: String,
    /// Equal to another's where both can share memory.
    pub machine: String,
    /// The worker that computes for it.
    pub worker: Option<PeerId>,
    pub handles: FxHashMap<TensorId, TensorHandle>,
    /// Batches that no worker has room for yet.
    pub queue: VecDeque<Vec<Command>>,
    /// Since when it waits for a worker to appear.
    pub waiting_since: Option<Duration>,
}

impl Session {
    pub fn new(peer: PeerId, number: u32, label: String, machine: String) -> Session {
        Session {
            peer,
            number,
            label,
            machine,
            worker: None,
            handles: FxHashMap::default(),
            queue: VecDeque::new(),
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
