//! An engine whose long calls take several slices of time, between which the worker handles messages
//! and other sessions have turns.

use std::sync::Arc;
use std::time::Duration;

use gt_engine_native::{NativeEngine, Tensor};
use gt_ir::instruction::Operands;
use gt_ir::{Attributes, Meta, Operation, Shape};
use gt_worker::engine::guarded;
use gt_worker::engine::pausable::{CallResult, EngineCall, PausableCall};
use gt_worker::{Engine, EngineError, SharedBuffer};

use crate::forwarding::forward_to_native;

/// The estimated work per second: calls of a few hundred bytes are long.
const RATE: u64 = 1 << 15;
/// Every call takes less than this many slices.
const SLICES: u64 = 5;

/// The native engine, with pausable calls that compute when they are complete.
pub(crate) struct SlowEngine {
    native: NativeEngine,
    /// The number of calls so far, from which their lengths follow.
    calls: u64,
}

impl SlowEngine {
    pub fn new() -> SlowEngine {
        SlowEngine { native: NativeEngine::new(1), calls: 0 }
    }
}

/// Computes a call.
type SlowRun = Box<dyn FnOnce(&mut NativeEngine) -> CallResult<Tensor> + Send>;

/// A call that has begun: computed by an engine of its own at the end of its last slice.
struct SlowCall {
    run: Option<SlowRun>,
    result: Option<CallResult<Tensor>>,
    /// The slices that are left, and whether it reaches a cut point in the next of them.
    slices: u64,
    is_paused: bool,
    bytes: u64,
}

impl PausableCall<Tensor> for SlowCall {
    fn wait(&mut self, _at_most: Duration) -> bool {
        assert!(!self.is_paused, "a paused call computes nothing");
        if self.slices > 0 {
            self.slices -= 1;
            return false;
        }
        if let Some(run) = self.run.take() {
            self.result = Some(run(&mut NativeEngine::new(1)));
        }
        true
    }

    fn pause(&mut self, _at_most: Duration) -> bool {
        // Every other slice has no cut point.
        self.is_paused = self.slices.is_multiple_of(2);
        if !self.is_paused {
            self.slices -= 1;
        }
        self.is_paused
    }

    fn resume(&mut self) {
        self.is_paused = false;
    }

    fn held(&self) -> u64 {
        self.bytes
    }

    fn finish(mut self: Box<Self>) -> CallResult<Tensor> {
        self.result.take().expect("it is complete")
    }
}

impl Engine for SlowEngine {
    forward_to_native!();

    fn now(&self) -> Duration {
        self.native.now()
    }

    fn name(&self) -> &str {
        "slow"
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

    fn run_several(
        &mut self,
        operation: &'static Operation,
        operands: Operands<Tensor>,
        attributes: &Attributes,
        outputs: &[Meta],
    ) -> Result<Vec<Tensor>, EngineError> {
        self.native.run_several(operation, operands, attributes, outputs)
    }

    fn is_exact(&self) -> bool {
        self.native.is_exact()
    }

    fn rate(&self) -> u64 {
        RATE
    }

    fn shared_buffer(&self, tensor: &Tensor) -> Option<SharedBuffer> {
        self.native.shared_buffer(tensor)
    }

    fn makes_view_of(&self, tensor: &Tensor, shape: &Shape) -> bool {
        self.native.makes_view_of(tensor, shape)
    }

    fn bytes_of_distinct(&self, operands: &[&Tensor], output: Meta) -> u64 {
        self.native.bytes_of_distinct(operands, output)
    }

    fn compact(&mut self, tensor: &Tensor) -> Result<Tensor, EngineError> {
        self.native.compact(tensor)
    }

    fn set_budget(&mut self, bytes: Option<u64>) {
        self.native.set_budget(bytes);
    }

    fn can_pause(&self) -> bool {
        true
    }

    fn begin<'a>(
        &mut self,
        call: EngineCall<'a, SlowEngine>,
    ) -> Result<Box<dyn PausableCall<Tensor>>, EngineCall<'a, SlowEngine>> {
        self.calls += 1;
        if self.calls.is_multiple_of(7) {
            return Err(call);
        }
        let slices = self.calls.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let (run, bytes): (SlowRun, u64) = match call {
            EngineCall::Operation(call) => {
                let bytes = call.outputs.iter().map(|meta| meta.bytes() as u64).sum();
                (Box::new(move |engine: &mut NativeEngine| call.run(engine)), bytes)
            }
            EngineCall::Program { program, mut inputs } => {
                let program = Arc::clone(program);
                let run = move |engine: &mut NativeEngine| {
                    let outputs = guarded(|| program.launch(engine, &mut inputs));
                    CallResult { outputs, inputs }
                };
                (Box::new(run), 0)
            }
        };
        let slices = slices % SLICES;
        Ok(Box::new(SlowCall { run: Some(run), result: None, slices, is_paused: false, bytes }))
    }
}
