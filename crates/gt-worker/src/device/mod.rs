//! The device: the state that all lanes of a worker share (engine, programs, statistics, events),
//! and the execution of single commands on it.
//!
//! - [`run`]: single instructions; [`iterate`]: parts of iterations, as plans; [`launch`]: programs.
//! - [`values`]: tensors from values, and back; [`charge`]: the memory of tensors; [`unspill`],
//!   [`snapshots`]: what is not in the device's memory; [`published`]: what lanes share.
//! - [`calls`]: long calls, which can be paused.
//! - [`exchange`], [`chain`], [`collective`]: tensors from other slots' pieces, made by [`assembly`]. [`commit`]: the end of
//!   an optimizer step.
//! - [`measure`], [`emit`]: the time that turns take, and events.

mod assembly;
pub(crate) mod calls;
mod chain;
mod charge;
mod collective;
mod commit;
mod emit;
mod exchange;
pub(crate) mod iterate;
pub(crate) mod launch;
pub(crate) mod measure;
mod published;
mod run;
mod snapshots;
mod unspill;
mod values;

pub(crate) use published::ENDED;

use std::sync::Arc;
use std::time::Duration;

use gt_ir::message::Failure;
use gt_ir::statistics::WorkerStats;
use gt_ir::{Instruction, Meta, Operand, SourceId, TensorId};

use crate::engine::{Engine, EngineError, guarded};
use crate::events::Emitter;
use crate::lane::Lane;
use crate::library::PublishedTensors;
use crate::programs::ProgramCache;
use crate::store::HeldTotals;
use crate::work::Options;

pub(crate) struct Device<E: Engine> {
    pub engine: E,
    pub options: Options,
    pub stats: WorkerStats,
    pub held: HeldTotals,
    pub library: PublishedTensors<E::Tensor>,
    pub programs: ProgramCache<E::Program, E::Tensor>,
    pub events: Emitter,
    /// The time of the shortest calls of this turn that can be paused, if any can.
    pub pausable_from: Option<Duration>,
    /// How long a turn waits for such a call.
    pub slice: Duration,
}

impl<E: Engine> Device<E> {
    pub fn new(name: String, engine: E) -> Device<E> {
        let stats =
            WorkerStats { name, engine: engine.name().to_string(), ..WorkerStats::default() };
        Device {
            engine,
            options: Options::default(),
            stats,
            held: HeldTotals::default(),
            library: PublishedTensors::default(),
            programs: ProgramCache::default(),
            events: Emitter::new(),
            pausable_from: None,
            slice: calls::SLICE,
        }
    }

    pub fn fail(&mut self, lane: &mut Lane<E::Tensor>, id: TensorId, failure: Arc<Failure>) {
        self.stats.operations_failed += 1;
        lane.store.fail(&mut self.held, id, failure);
    }

    pub fn fail_outputs(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        instruction: &Instruction,
        failure: &Arc<Failure>,
    ) {
        self.stats.operations_failed += 1;
        for (id, _) in instruction.outputs() {
            lane.store.fail(&mut self.held, id, Arc::clone(failure));
        }
    }

    pub fn failure(
        &self,
        instruction: &Instruction,
        metas: &[Operand<Meta>],
        reason: String,
    ) -> Arc<Failure> {
        let (operation, worker) = (instruction.describe(metas), self.stats.name.clone());
        let output = instruction.output;
        let place = (output < TensorId::PLANNED).then_some(output.0);
        Arc::new(Failure { place, ..Failure::new(operation, reason, worker, instruction.source) })
    }

    /// A failure that belongs to no line of the program.
    pub fn plain_failure(&self, operation: &str, reason: String) -> Failure {
        Failure::new(operation, reason, self.stats.name.as_str(), SourceId::default())
    }

    /// Calls the engine; a panic in it becomes an error.
    pub fn guarded<T>(
        &mut self,
        call: impl FnOnce(&mut E) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let engine = &mut self.engine;
        guarded(|| call(engine))
    }
}
