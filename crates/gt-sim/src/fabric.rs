//! A simulated fabric: engines whose collective calls block until all members have made them, as
//! with NCCL or Gloo.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use gt_engine_native::{NativeEngine, Tensor};
use gt_ir::fabric::{CollectiveCall, Fabric};
use gt_ir::instruction::Operands;
use gt_ir::ops::binary::ADD;
use gt_ir::{Attributes, DType, Meta, Operand, Operation, WorkerId};
use gt_worker::{CollectivePart, Engine, EngineError};

use crate::forwarding::forward_to_native;

/// The real-time limit of a call, not reached in a passing test.
const PATIENCE: Duration = Duration::from_secs(20);

/// The rendezvous of a world's engines.
#[derive(Default)]
pub struct Hub {
    meetings: Mutex<Meetings>,
    arrival: Condvar,
}

#[derive(Default)]
struct Meetings {
    open: BTreeMap<CallKey, Meeting>,
    /// The number of calls that all their members have completed.
    completed: u64,
    /// The member whose next call fails.
    unlucky: Option<WorkerId>,
    /// Whether a missing member will never make the call.
    is_hopeless: bool,
}

/// The members, their group's epoch, and the number of the call.
type CallKey = (Vec<WorkerId>, u64, u64);

struct Meeting {
    call: CollectiveCall,
    /// Each member's input, once it has made the call.
    gives: Vec<Option<Vec<(usize, Tensor)>>>,
    /// The number of members that have taken their results.
    left: usize,
    is_broken: bool,
}

fn lock(mutex: &Mutex<Meetings>) -> MutexGuard<'_, Meetings> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Hub {
    /// The fabric in a worker's hello.
    pub fn fabric(worker: u64) -> Fabric {
        let (kind, store) = ("hub/1".to_string(), format!("hub:{worker}"));
        Fabric { kind, local: false, store, device: format!("device {worker}") }
    }

    /// How many calls all their members have completed.
    pub fn completed(&self) -> u64 {
        lock(&self.meetings).completed
    }

    /// Makes the next call of a worker fail, for all of its members.
    pub fn fail_next(&self, worker: WorkerId) {
        lock(&self.meetings).unlucky = Some(worker);
    }

    /// Sets whether waiting members give up, because another will never make the call.
    pub(crate) fn set_hopeless(&self, is_hopeless: bool) {
        lock(&self.meetings).is_hopeless = is_hopeless;
    }

    /// Enters a call, and returns all members' inputs once every member has entered it.
    fn meet(
        &self,
        call: CallKey,
        part: &CollectivePart<Tensor>,
    ) -> Result<Vec<Gives>, EngineError> {
        let failed = |reason: &str| EngineError::Other(reason.to_string());
        let mut meetings = lock(&self.meetings);
        let members = part.engine_collective.members.len();
        let is_unlucky = meetings.unlucky == Some(part.engine_collective.members[part.rank].worker);
        if is_unlucky {
            meetings.unlucky = None;
        }
        let meeting = meetings.open.entry(call.clone()).or_insert_with(|| Meeting {
            call: part.call,
            gives: vec![None; members],
            left: 0,
            is_broken: false,
        });
        assert_eq!(meeting.call, part.call, "all members must do the same");
        if is_unlucky {
            meeting.is_broken = true;
            self.arrival.notify_all();
            return Err(failed("a cable was pulled"));
        }
        meeting.gives[part.rank] = Some(part.gives.clone());
        self.arrival.notify_all();
        loop {
            let hopeless = meetings.is_hopeless;
            let meeting = meetings.open.get_mut(&call).expect("it is open until all have left");
            if meeting.gives.iter().all(Option::is_some) {
                let gives = meeting.gives.iter().flatten().cloned().collect();
                meeting.left += 1;
                if meeting.left == members {
                    meetings.open.remove(&call);
                    meetings.completed += 1;
                }
                return Ok(gives);
            }
            if meeting.is_broken {
                return Err(failed("another member has left"));
            }
            if hopeless {
                return Err(failed("another member has not come"));
            }
            let (guard, waited) = self
                .arrival
                .wait_timeout(meetings, PATIENCE)
                .unwrap_or_else(|poisoned| poisoned.into_inner());
            meetings = guard;
            assert!(!waited.timed_out(), "a member hangs in a call: {call:?}");
        }
    }
}

/// A member's input, see [`CollectivePart::gives`].
type Gives = Vec<(usize, Tensor)>;

/// The native engine with a fabric.
pub struct JoiningEngine {
    native: NativeEngine,
    hub: Arc<Hub>,
    /// Each group's epoch, and its number of calls.
    groups: BTreeMap<Vec<WorkerId>, (u64, u64)>,
}

impl JoiningEngine {
    pub fn new(hub: Arc<Hub>) -> JoiningEngine {
        JoiningEngine { native: NativeEngine::new(1), hub, groups: BTreeMap::new() }
    }

    fn sum(&mut self, parts: Vec<Tensor>, whole: Meta) -> Result<Tensor, EngineError> {
        let mut parts = parts.into_iter();
        let first = parts.next().expect("a group has members");
        parts.try_fold(first, |total, part| {
            let operands: Operands<Tensor> =
                [Operand::Tensor(total), Operand::Tensor(part)].into_iter().collect();
            self.native.run(&ADD, operands, &Attributes::new(), whole)
        })
    }
}

impl Engine for JoiningEngine {
    forward_to_native!();

    fn now(&self) -> Duration {
        self.native.now()
    }

    fn name(&self) -> &str {
        "joining"
    }

    fn run(
        &mut self,
        operation: &'static Operation,
        operands: Operands<Tensor>,
        attributes: &Attributes,
        output: Meta,
    ) -> Result<Tensor, EngineError> {
        self.native.run(operation, operands, attributes, output)
    }

    fn run_collective(&mut self, part: CollectivePart<Tensor>) -> Result<Vec<Tensor>, EngineError> {
        let members: Vec<WorkerId> =
            part.engine_collective.members.iter().map(|member| member.worker).collect();
        let (epoch, calls) = self.groups.entry(members.clone()).or_default();
        if *epoch < part.epoch {
            (*epoch, *calls) = (part.epoch, 0);
        }
        *calls += 1;
        let given = self.hub.clone().meet((members, part.epoch, *calls), &part)?;
        let of = |rank: usize, place: usize| given[rank][place].1.clone();
        match part.call {
            CollectiveCall::AllReduce => {
                let parts = (0..given.len()).map(|rank| of(rank, 0)).collect();
                Ok(vec![self.sum(parts, part.gets[0].1)?])
            }
            CollectiveCall::ReduceScatter => {
                let parts = (0..given.len()).map(|rank| of(rank, part.rank)).collect();
                Ok(vec![self.sum(parts, part.gets[0].1)?])
            }
            CollectiveCall::AllGather | CollectiveCall::Broadcast { .. } => {
                Ok(part.gets.iter().map(|(from, _)| of(*from, 0)).collect())
            }
            CollectiveCall::AllToAll => {
                let mut taken = vec![0; given.len()];
                let got = part.gets.iter().map(|(from, _)| {
                    let mut mine = given[*from].iter().filter(|(to, _)| *to == part.rank);
                    taken[*from] += 1;
                    mine.nth(taken[*from] - 1).expect("who is to get it is given it").1.clone()
                });
                Ok(got.collect())
            }
        }
    }

    fn can_reduce(&self, dtype: DType) -> bool {
        dtype.is_float()
    }
}
