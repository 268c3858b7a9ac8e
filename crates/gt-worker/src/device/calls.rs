//! Long calls of a lane that can be paused, so that other sessions need not wait for their ends.

use std::time::Duration;

use gt_ir::Instruction;
use gt_ir::instruction::Operands;
use gt_ir::operation::Body;

use super::Device;
use super::launch::PartRun;
use crate::engine::pausable::{EngineCall, PausableCall, PausableOperation};
use crate::engine::{Engine, estimated_time};
use crate::lane::Lane;
use crate::lane::call::{BegunLaunch, LaneCall, Metas, PauseState, Purpose};

/// How long a turn waits for a call before other lanes may have one, unless the driver waits for
/// it, and how long for a call to pause.
pub(super) const SLICE: Duration = Duration::from_micros(500);

/// The outcome of a call that is complete.
pub(crate) enum CallEnd {
    /// It was an instruction, with this work.
    Instruction(u64),
    /// It was a part of an iteration.
    Part(PartRun),
    /// It was a batch of this many commands.
    Batch(PartRun, usize),
}

impl<E: Engine> Device<E> {
    /// Returns whether a call with this estimated work should be one that can be paused.
    fn is_long(&self, work: u64) -> bool {
        let time = Duration::from_nanos(estimated_time(work, self.engine.rate()));
        self.pausable_from.is_some_and(|from| time >= from)
    }

    /// Returns the same for a program: by the time that it takes, if it has been run.
    pub(super) fn is_long_program(&mut self, number: u64) -> bool {
        let Some(from) = self.pausable_from else { return false };
        let time = self.programs.checked_time(&mut self.engine, number);
        time.is_some_and(|time| time >= from)
    }

    /// Begins an instruction as a call that can be paused, if it is long. Returns its operands if
    /// it is not.
    pub(super) fn begin_instruction(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        instruction: &Instruction,
        operands: Operands<E::Tensor>,
        metas: &Metas,
    ) -> Option<Operands<E::Tensor>> {
        let operation = instruction.operation;
        if self.options.check_nan
            || matches!(operation.body, Body::Composite(_)) && !self.engine.lowers(operation)
            || instruction.check(metas).is_err()
            || !self.is_long(operation.work(metas, instruction.meta()))
        {
            return Some(operands);
        }
        let attributes = instruction.attributes.clone();
        let outputs = instruction.results.clone();
        let call = PausableOperation { operation, operands, attributes, outputs };
        match self.engine.begin(EngineCall::Operation(Box::new(call))) {
            Ok(call) => {
                let of = Box::new((instruction.clone(), metas.clone()));
                self.set_call(lane, call, Purpose::Instruction(of));
                None
            }
            Err(EngineCall::Operation(call)) => Some(call.operands),
            Err(EngineCall::Program { .. }) => unreachable!("the call itself is returned"),
        }
    }

    /// Records a call that has begun as the lane's.
    pub(super) fn set_call(
        &self,
        lane: &mut Lane<E::Tensor>,
        call: Box<dyn PausableCall<E::Tensor>>,
        purpose: Purpose,
    ) {
        lane.call = Some(Box::new(LaneCall {
            call,
            purpose,
            state: PauseState::Running,
            held: 0,
            charged: self.engine.now(),
            taken: Duration::ZERO,
            ran: Duration::ZERO,
            event: self.events.open_subject(),
        }));
    }

    /// Waits a moment for a lane's call, resumed if it is paused; returns its outcome if it is
    /// complete then.
    pub fn resume_call(&mut self, lane: &mut Lane<E::Tensor>) -> Option<CallEnd> {
        let mut call = lane.call.take()?;
        if self.events.is_on()
            && let Some((kind, subject)) = call.event
        {
            self.events.resume(kind, subject, self.engine.now(), &self.stats);
        }
        if call.state == PauseState::Paused {
            call.charged = self.engine.now();
        }
        if call.state != PauseState::Running {
            call.call.resume();
            (call.state, call.ran) = (PauseState::Running, Duration::ZERO);
        }
        let is_complete = call.call.wait(self.slice);
        call.charge(self.engine.now());
        if !is_complete {
            lane.call = Some(call);
            return None;
        }
        self.held.granted -= call.held;
        let LaneCall { call, purpose, taken, .. } = *call;
        let result = call.finish();
        Some(match purpose {
            Purpose::Instruction(of) => {
                let (made, (instruction, metas)) = (result.outputs.map(Into::into), *of);
                CallEnd::Instruction(self.settle(lane, &instruction, &metas, made))
            }
            Purpose::Launch(begun) => {
                let BegunLaunch { launch, given, kept, freed, commands } = *begun;
                self.programs.add_time(launch.program, taken);
                let (kept, freed) = (kept.into_iter(), freed.into_iter());
                let launched = (result.inputs, result.outputs);
                let run = self.settle_launch(lane, launch, &given, launched, kept, freed);
                commands.map_or(CallEnd::Part(run), |count| CallEnd::Batch(run, count))
            }
        })
    }

    /// Pauses a lane's call; returns the time that it has computed since it was last charged, or
    /// `None` if it has not reached a point where it can be paused after a moment.
    pub fn pause_call(&mut self, lane: &mut Lane<E::Tensor>) -> Option<Duration> {
        let Some(call) = &mut lane.call else { return Some(Duration::ZERO) };
        if call.state == PauseState::Paused {
            return Some(Duration::ZERO);
        }
        if !call.call.pause(SLICE) {
            call.state = PauseState::Pausing;
            return None;
        }
        call.state = PauseState::Paused;
        let computed = call.charge(self.engine.now());
        self.held.granted -= call.held;
        call.held = call.call.held();
        self.held.granted += call.held;
        Some(computed)
    }

    /// Abandons a lane's call.
    pub fn abandon_call(&mut self, lane: &mut Lane<E::Tensor>) {
        if let Some(call) = lane.call.take() {
            self.held.granted -= call.held;
        }
    }
}
