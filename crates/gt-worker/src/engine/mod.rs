//! The engine interface: what a backend implements to hold tensors and compute on them.
//!
//! - [`pausable`]: long calls, which can be paused; [`plainly`]: traces run step by step.

pub mod pausable;
mod plainly;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use gt_ir::fabric::{CollectiveCall, EngineCollective};
use gt_ir::gpu::GpuStatus;
use gt_ir::instruction::Operands;
use gt_ir::statistics::Compilation;
use gt_ir::{Attributes, DType, Meta, Operation, Shape, TensorData, WorkerId};

use self::pausable::{EngineCall, PausableCall};
pub use self::plainly::launch_plainly;
use crate::mismatch::Mismatch;
use crate::plan::{InputValue, Plan};

/// An engine's error, with a message for the user.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EngineError {
    #[error("index {index} is out of range for an axis of length {length}")]
    IndexOutOfRange { index: i64, length: usize },
    #[error("out of memory: {bytes} bytes asked for")]
    OutOfMemory { bytes: usize },
    #[error("{0}")]
    Other(String),
}

/// An engine (backend) holds tensors of its own type and computes operations on them.
///
/// The worker has checked every call against the instruction set: operand count, attributes, shapes
/// and dtypes are valid, and `output` is the inferred meta.
pub trait Engine: Send {
    /// The engine's tensor handle. Cloning must be cheap (a reference).
    type Tensor: Clone + Send;

    /// A prepared plan, which can be run many times.
    type Program: Send;

    fn name(&self) -> &str;

    /// Returns whether [`Engine::run`] supports the operation; unsupported composites are expanded.
    fn lowers(&self, operation: &'static Operation) -> bool;

    /// Creates a tensor with these values.
    fn create(&mut self, data: TensorData) -> Result<Self::Tensor, EngineError>;

    /// Reads a tensor's values; blocks until they are computed.
    fn read(&mut self, tensor: &Self::Tensor) -> Result<TensorData, EngineError>;

    /// Makes several calls while holding what they all need, such as an interpreter's lock, so that
    /// each does not acquire it again.
    fn hold(calls: &mut dyn FnMut())
    where
        Self: Sized,
    {
        calls();
    }

    /// Computes one operation. Operands are passed by value: one whose last reference this is may
    /// be overwritten. The result has the shape and dtype of `output`.
    fn run(
        &mut self,
        operation: &'static Operation,
        operands: Operands<Self::Tensor>,
        attributes: &Attributes,
        output: Meta,
    ) -> Result<Self::Tensor, EngineError>;

    /// Computes one operation that has several results, in their order; otherwise as
    /// [`Engine::run`].
    fn run_several(
        &mut self,
        operation: &'static Operation,
        _operands: Operands<Self::Tensor>,
        _attributes: &Attributes,
        _outputs: &[Meta],
    ) -> Result<Vec<Self::Tensor>, EngineError> {
        let (name, engine) = (operation.name, self.name());
        Err(EngineError::Other(format!("{name} has several results, which '{engine}' lacks")))
    }

    /// Prepares (compiles) a plan; all of its steps are needed for its outputs.
    fn prepare(&mut self, plan: &Plan) -> Result<Self::Program, EngineError>;

    /// Returns how often a lane runs a plan by [`Engine::launch_cold`] before it uses
    /// [`Engine::launch`], unless the user asked for compiled code. It is a number of runs, so that
    /// the stream decides which code runs, and not the time that a compiler takes.
    fn warmup(&self) -> u32 {
        0
    }

    /// Waits until a program can be launched; returns whether it can. An engine that compiles in
    /// the background is polled.
    fn settle(&mut self, _program: &mut Self::Program, _at_most: Duration) -> bool {
        true
    }

    /// Runs a plan that is not warm, operation by operation; otherwise like [`Engine::launch`].
    fn launch_cold(
        &mut self,
        program: &mut Self::Program,
        inputs: &mut [InputValue<Self::Tensor>],
    ) -> Result<Vec<Self::Tensor>, EngineError> {
        self.launch(program, inputs)
    }

    /// Runs a plan and returns its outputs in order. Inputs that die may be taken, but only once no
    /// error but out of memory can occur: after any other error all inputs must be unchanged.
    fn launch(
        &mut self,
        program: &mut Self::Program,
        inputs: &mut [InputValue<Self::Tensor>],
    ) -> Result<Vec<Self::Tensor>, EngineError>;

    /// Returns whether a run now would use code that was not compared with single operations yet.
    fn is_unchecked(&mut self, program: &mut Self::Program) -> bool;

    /// Whether a program is compiled, rather than run operation by operation.
    fn is_compiled(&self, program: &Self::Program) -> bool {
        let _ = program;
        true
    }

    /// The time spent compiling in the background, and the number of failures.
    fn background(&self) -> (Duration, u64) {
        (Duration::ZERO, 0)
    }

    /// The most recent compilations, for statistics.
    fn compilations(&self) -> Vec<Compilation> {
        Vec::new()
    }

    /// Receives the result of that comparison. After a difference, the program must be run
    /// operation by operation from now on.
    fn judge(&mut self, program: &mut Self::Program, wrong: Option<&str>);

    /// Returns whether compiled plans compute the same bits as their operations run one by one.
    fn is_exact(&self) -> bool {
        false
    }

    /// The dtype that float32 factors of matrix products and convolutions are rounded to, if they
    /// are.
    fn factors(&self) -> Option<DType> {
        None
    }

    /// Saves what is needed to replay a difference, before [`Engine::judge`] receives it, and
    /// returns where it is.
    fn report(&mut self, mismatch: &Mismatch) -> Option<String> {
        let _ = mismatch;
        None
    }

    /// Returns the estimated work per second: the bytes that elementwise operations read and write.
    /// Long iterations are split into parts of a hundredth of it.
    fn rate(&self) -> u64 {
        10_000_000_000
    }

    /// A clock, for statistics only.
    fn now(&self) -> Duration;

    /// Returns the memory that a tensor shares with others, or that is longer than the tensor;
    /// `None` if it has memory of its own, as most do.
    fn shared_buffer(&self, _tensor: &Self::Tensor) -> Option<SharedBuffer> {
        None
    }

    /// Whether a tensor is in this memory.
    fn is_in(&self, tensor: &Self::Tensor, buffer: SharedBuffer) -> bool {
        self.shared_buffer(tensor).is_some_and(|of| of.id == buffer.id)
    }

    /// Whether slices, permutations and expansions share their operand's memory.
    fn makes_views(&self) -> bool {
        true
    }

    /// Whether a tensor can be reshaped without a copy.
    fn makes_view_of(&self, _tensor: &Self::Tensor, _shape: &Shape) -> bool {
        false
    }

    /// Returns the bytes that the result of an elementwise operation takes. If all operands repeat
    /// elements (expanded tensors), the result may do so too, and take fewer bytes than its
    /// elements have.
    fn bytes_of_distinct(&self, _operands: &[&Self::Tensor], output: Meta) -> u64 {
        output.bytes() as u64
    }

    /// Returns a copy of a tensor, in memory of its own and no longer than needed.
    ///
    /// # Errors
    /// Memory for it cannot be allocated.
    fn compact(&mut self, tensor: &Self::Tensor) -> Result<Self::Tensor, EngineError> {
        let data = self.read(tensor)?;
        self.create(data)
    }

    /// Whether tensors are in the host's memory, rather than in that of a device.
    fn is_on_host(&self) -> bool {
        true
    }

    /// The bytes of the device's memory, if it is not the host's.
    fn memory(&self) -> Option<u64> {
        None
    }

    /// Returns the NVIDIA GPU that it computes on, as it was last read. Asks for a new reading if
    /// that one is old, and does not wait for it.
    fn gpu(&self) -> Option<GpuStatus> {
        None
    }

    /// Returns whether it can pause long calls: see [`Engine::begin`].
    fn can_pause(&self) -> bool {
        false
    }

    /// Begins a call that can be paused. Returns the call itself if it cannot begin another one
    /// now. While it computes, the engine may read and create tensors, and run other calls once it
    /// is paused.
    fn begin<'a>(
        &mut self,
        call: EngineCall<'a, Self>,
    ) -> Result<Box<dyn PausableCall<Self::Tensor>>, EngineCall<'a, Self>> {
        Err(call)
    }

    /// Sets what is called when a call that [`Engine::begin`] began is complete, and when the
    /// engine's GPU was read again ([`Engine::gpu`]).
    fn notify_by(&mut self, _notify: Notifier) {}

    /// Returns whether operations return before the device has completed them. Then only the device
    /// can measure them: [`Engine::begin_turn`] and [`Engine::end_turn`] are called around each
    /// turn.
    fn runs_ahead(&self) -> bool {
        false
    }

    /// Starts a turn.
    fn begin_turn(&mut self) {}

    /// Ends a turn: all of its operations are issued. Returns whether the device will report its
    /// time.
    fn end_turn(&mut self) -> bool {
        false
    }

    /// Returns the nanoseconds of each turn that the device has completed since the last call, in
    /// order; waits until at most `under_way` turns are in flight.
    fn turns_done(&mut self, _under_way: usize) -> Vec<u64> {
        Vec::new()
    }

    /// Sets the bytes that it may allocate from now on, for results and temporaries: beyond them an
    /// operation is out of memory. `None` for no limit. Engines that cannot count their allocations
    /// ignore it.
    fn set_budget(&mut self, _bytes: Option<u64>) {}

    /// Releases memory cached for reuse; called when a session ends.
    fn release_memory(&mut self) {}

    /// Called in the child after a fork: the parent's threads do not exist here.
    fn after_fork(&mut self) {}

    /// Carries out a collective with the engines of other workers, which all make the same call;
    /// blocks until they do. Returns a tensor for each of [`CollectivePart::gets`].
    ///
    /// # Errors
    /// The collective failed. Other members may block until their own timeout.
    fn run_collective(
        &mut self,
        _part: CollectivePart<Self::Tensor>,
    ) -> Result<Vec<Self::Tensor>, EngineError> {
        Err(EngineError::Other(format!("the engine '{}' has no fabric", self.name())))
    }

    /// Whether [`Engine::run_collective`] can sum a dtype; must be the same on all engines of a
    /// fabric. Other parts are only moved, and each worker combines them itself.
    fn can_reduce(&self, _dtype: DType) -> bool {
        false
    }

    /// Drops the groups of a lost worker.
    fn close_groups(&mut self, _worker: WorkerId) {}
}

/// Called by an engine on any thread, to wake the driver of its worker.
pub type Notifier = Arc<dyn Fn() + Send + Sync>;

/// Memory that several tensors may share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedBuffer {
    /// The same for all tensors in it, and for no other memory meanwhile.
    pub id: u64,
    pub bytes: u64,
}

/// An engine's part of a collective.
pub struct CollectivePart<'a, T> {
    pub engine_collective: &'a EngineCollective,
    /// As in `engine_collective`, or the equivalent that moves parts without combining them.
    pub call: CollectiveCall,
    /// This worker's rank among the members.
    pub rank: usize,
    /// The epoch of the group: the number of its failures. A new epoch needs a new group.
    pub epoch: u64,
    /// Blocks to send, with the receiver's rank. A block for all members appears once, with this
    /// worker's rank. A reduce-scatter includes this worker's own block.
    pub gives: Vec<(usize, T)>,
    /// Blocks to receive, with the sender's rank. If `call` combines, only the result, with this
    /// worker's rank.
    pub gets: Vec<(usize, Meta)>,
}

/// Runs an operation with several results.
///
/// # Errors
/// The engine's, or it returns another number of results.
pub fn run_several<E: Engine>(
    engine: &mut E,
    operation: &'static Operation,
    operands: Operands<E::Tensor>,
    attributes: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<E::Tensor>, EngineError> {
    let made = engine.run_several(operation, operands, attributes, outputs)?;
    if made.len() == outputs.len() {
        return Ok(made);
    }
    let (name, count, expected) = (operation.name, made.len(), outputs.len());
    Err(EngineError::Other(format!("{name} gave {count} results, expected {expected}")))
}

/// Calls an engine; a panic is an error.
pub fn guarded<T>(call: impl FnOnce() -> Result<T, EngineError>) -> Result<T, EngineError> {
    catch_unwind(AssertUnwindSafe(call))
        .unwrap_or_else(|panic| Err(EngineError::Other(panic_text(&*panic))))
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    format!("the engine panicked: {text}")
}

/// Returns the estimated nanoseconds of work, at a rate per second.
pub(crate) fn estimated_time(work: u64, rate: u64) -> u64 {
    (u128::from(work) * 1_000_000_000 / u128::from(rate.max(1))) as u64
}
