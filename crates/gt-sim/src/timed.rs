//! An engine whose operations take virtual time on its device, by their estimated work.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gt_dispatcher::PeerId;
use gt_engine_native::{NativeEngine, Tensor};
use gt_ir::instruction::Operands;
use gt_ir::{Attributes, Meta, Operand, Operation};
use gt_worker::engine::pausable::{CallResult, EngineCall, PausableCall, PausableOperation};
use gt_worker::{Engine, EngineError};

use crate::World;
use crate::forwarding::forward_to_native;

/// The work per second: 5,000 floats that are read and written take 4 ms.
pub(crate) const RATE: u64 = 10_000_000;
/// The time between two points where a call can be paused.
const CUT: Duration = Duration::from_micros(600);
/// The time between two turns.
const BETWEEN: Duration = Duration::from_micros(1);
/// The time that an operation takes at least.
const LEAST: Duration = Duration::from_micros(2);

/// The clock of a worker's device: it advances while the device computes, and the world sets it
/// forward when the worker does something.
#[derive(Clone, Default)]
pub(crate) struct DeviceClock(Arc<AtomicU64>);

impl DeviceClock {
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }

    pub fn set_forward(&self, to: Duration) {
        self.0.fetch_max(to.as_nanos() as u64, Ordering::Relaxed);
    }

    fn advance(&self, by: Duration) {
        self.0.fetch_add(by.as_nanos() as u64, Ordering::Relaxed);
    }
}

/// The native engine, on a device with a virtual clock.
pub(crate) struct TimedEngine {
    native: NativeEngine,
    clock: DeviceClock,
}

impl TimedEngine {
    pub fn new(clock: DeviceClock) -> TimedEngine {
        TimedEngine { native: NativeEngine::new(1), clock }
    }
}

impl World {
    /// Sets a worker's clock forward to the time, which it returns.
    pub(crate) fn set_clock(&self, peer: PeerId) -> Duration {
        if let Some(clock) = self.clocks.get(&peer) {
            clock.set_forward(self.now);
        }
        self.now
    }

    /// Schedules a turn of a worker after a time: at once, if its device has a clock, and only one.
    pub(crate) fn schedule_turn(&mut self, from: Duration, worker: PeerId) {
        if !self.clocks.contains_key(&worker) {
            return self.links.turn(from, worker);
        }
        let at = from + BETWEEN;
        if self.turns.get(&worker).is_none_or(|earlier| at < *earlier) {
            self.turns.insert(worker, at);
            self.links.put_turn(at, worker);
        }
    }

    /// Whether a worker's turn takes place now: it is not replaced by an earlier one, and the device is
    /// not computing; then it is put off.
    pub(crate) fn is_due(&mut self, worker: PeerId) -> bool {
        let Some(clock) = self.clocks.get(&worker) else { return true };
        if self.turns.get(&worker).is_none_or(|at| *at > self.now) {
            return false;
        }
        self.turns.remove(&worker);
        let free = clock.now();
        if free > self.now {
            self.turns.insert(worker, free);
            self.links.put_turn(free, worker);
        }
        free <= self.now
    }
}

/// Returns how long an operation takes.
fn time_of(operation: &Operation, operands: &Operands<Tensor>, output: Meta) -> Duration {
    let metas: Vec<Operand<Meta>> = operands
        .iter()
        .map(|operand| match operand {
            Operand::Tensor(tensor) => Operand::Tensor(tensor.meta()),
            Operand::Scalar(scalar) => Operand::Scalar(*scalar),
        })
        .collect();
    let work = operation.work(&metas, output);
    LEAST + Duration::from_nanos(work * 1_000_000_000 / RATE)
}

/// An operation in parts: it is computed when its time has passed.
struct TimedCall {
    clock: DeviceClock,
    call: Option<Box<PausableOperation<Tensor>>>,
    left: Duration,
    /// The time until its next cut point.
    until_cut: Duration,
}

impl TimedCall {
    fn run_for(&mut self, at_most: Duration) {
        let ran = at_most.min(self.left);
        self.clock.advance(ran);
        self.left -= ran;
        let beyond = (ran + CUT - self.until_cut).as_nanos() % CUT.as_nanos();
        self.until_cut = CUT - Duration::from_nanos(beyond as u64);
    }
}

impl PausableCall<Tensor> for TimedCall {
    fn wait(&mut self, at_most: Duration) -> bool {
        self.run_for(at_most);
        self.left.is_zero()
    }

    fn pause(&mut self, at_most: Duration) -> bool {
        let is_cut = self.until_cut <= at_most;
        self.run_for(self.until_cut.min(at_most));
        is_cut
    }

    fn resume(&mut self) {}

    fn held(&self) -> u64 {
        0
    }

    fn finish(mut self: Box<Self>) -> CallResult<Tensor> {
        self.call.take().expect("it ends once").run(&mut NativeEngine::new(1))
    }
}

impl Engine for TimedEngine {
    forward_to_native!();

    fn name(&self) -> &str {
        "timed"
    }

    fn run(
        &mut self,
        operation: &'static Operation,
        operands: Operands<Tensor>,
        attributes: &Attributes,
        output: Meta,
    ) -> Result<Tensor, EngineError> {
        self.clock.advance(time_of(operation, &operands, output));
        self.native.run(operation, operands, attributes, output)
    }

    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn rate(&self) -> u64 {
        RATE
    }

    fn can_pause(&self) -> bool {
        true
    }

    fn begin<'a>(
        &mut self,
        call: EngineCall<'a, TimedEngine>,
    ) -> Result<Box<dyn PausableCall<Tensor>>, EngineCall<'a, TimedEngine>> {
        let EngineCall::Operation(call) = call else { return Err(call) };
        let Some(output) = call.outputs.first() else { return Err(EngineCall::Operation(call)) };
        let left = time_of(call.operation, &call.operands, *output);
        let clock = self.clock.clone();
        Ok(Box::new(TimedCall { clock, call: Some(call), left, until_cut: CUT }))
    }
}
