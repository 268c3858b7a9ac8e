//! The native engine: computes every operation on the CPU.
//!
//! Start with [`table`], which maps operations to the code that computes them.
//!
//! - Memory: [`tensor`] (strided views of shared [`buffer`]s), [`uninit`] (tensors being written),
//!   [`budget`] (the limit on allocations in a turn).
//! - Elementwise operations: [`elementwise`] drives the [`kernel`]s of [`unary`], [`binary`],
//!   [`ternary`], [`parts`], [`complex`], [`via_f64`] (over [`special`]) and [`cast`] (over
//!   [`half_floats`]). [`element`] and [`math`] define the element types and their arithmetic.
//! - Reductions: [`reduce`], [`extreme`] (argmax, argmin) over [`fold`].
//! - Along an axis: [`axis_rows`] (sort, topk, scans), [`softmax`], [`normalization`], [`fourier`].
//! - Products: [`matmul`] (over [`small`] and the `gemm` crate), [`convolution`], [`attention`],
//!   [`linalg`]. [`pooling`] is max pooling.
//! - Views and copies: [`shape`], [`copy`], [`transpose`], [`repeats`] (results with repeated
//!   elements).
//! - Indexing: [`index`], [`scatter`], [`rows`], [`masked`].
//! - Creation: [`create`], [`random`], [`samplers`].
//! - Plans: [`program`] runs many operations as one.
//! - The machine: [`simd`] (instruction sets), [`threads`] over [`thread_pool`], [`processor`]
//!   (which processor a thread runs on). [`pausable`] calls stop at a [`gate`] between the pieces of
//!   their loops.
//!
//! An operation writes into its first operand's memory if nothing else refers to it. Neighbours:
//! `gt-worker` defines the engine's interface and calls it; `gt-linalg` and `gt-simd` are libraries
//! of this crate. The engine must know neither clients, sessions nor the dispatcher. The worker
//! expands composites that the engine has no lowering for.

mod attention;
mod axis_rows;
mod binary;
mod budget;
mod buffer;
mod cast;
mod complex;
mod convolution;
mod copy;
mod create;
mod element;
mod elementwise;
mod extreme;
mod fold;
mod fourier;
mod gate;
mod half_floats;
mod index;
mod kernel;
mod linalg;
mod masked;
mod math;
mod matmul;
mod normalization;
mod parts;
mod pausable;
mod pooling;
pub mod processor;
mod program;
mod random;
mod reduce;
mod repeats;
mod rows;
mod samplers;
mod scatter;
mod shape;
mod small;
mod softmax;
mod special;
mod table;
mod tensor;
mod ternary;
mod thread_pool;
mod threads;
mod transpose;
mod unary;
mod uninit;
mod via_f64;

use std::sync::Arc;
use std::time::{Duration, Instant};

use gt_ir::instruction::Operands;
use gt_ir::operation::ResultKind;
use gt_ir::ops::custom;
use gt_ir::{Attributes, DType, Meta, Operation, Shape, TensorData};
use gt_worker::engine::Notifier;
use gt_worker::engine::pausable::{EngineCall, PausableCall};
use gt_worker::mismatch::Mismatch;
use gt_worker::plan::InputValue;
use gt_worker::{Engine, EngineError, SharedBuffer};

use crate::budget::Budget;
use crate::element::compute_dtype;
use crate::elementwise::{PARALLEL, PARALLEL_FUNCTIONS};
use crate::kernel::{ByDType, Kernel};
use crate::pausable::CallThreads;
pub use crate::program::NativeProgram;
use crate::table::Lowering;
pub use crate::tensor::Tensor;
use crate::threads::Threads;
pub use gt_simd as simd;

/// Called with each prepared plan, the resulting program, and how long that took.
type PrepareListener = Box<dyn Fn(&gt_worker::plan::Plan, &NativeProgram, Duration) + Send>;

/// Called with a mismatch; stores it for replay and returns the location.
type MismatchKeeper = Box<dyn Fn(&Mismatch) -> Option<String> + Send>;

/// The native engine: computes operations on the CPU.
pub struct NativeEngine {
    threads: Threads,
    started: Instant,
    listener: Option<PrepareListener>,
    keeper: Option<MismatchKeeper>,
    budget: &'static Budget,
    calls: CallThreads,
}

/// Returns a description of everything that the bits of results depend on: version, architecture
/// and instruction set.
pub fn arithmetic() -> String {
    let (version, arch) = (env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    format!("native {version} on {arch} {:?}", simd::level())
}

impl NativeEngine {
    /// Creates an engine that computes on up to `threads` threads, including the caller's. The
    /// others start with the first operation that is large enough for them.
    pub fn new(threads: usize) -> NativeEngine {
        // A process-wide setting of gemm, which no other code uses: small batches multiply some 5 %
        // faster when the weights are not copied first.
        gemm::set_lhs_packing_threshold_single_thread(32);
        let (threads, started) = (Threads::new(threads), Instant::now());
        NativeEngine {
            threads,
            started,
            listener: None,
            keeper: None,
            budget: Budget::new(),
            calls: CallThreads::default(),
        }
    }

    /// Sets a listener for prepared plans: the plan, the program, and how long preparing it took.
    pub fn when_prepared(
        self,
        listener: impl Fn(&gt_worker::plan::Plan, &NativeProgram, Duration) + Send + 'static,
    ) -> NativeEngine {
        NativeEngine { listener: Some(Box::new(listener)), ..self }
    }

    /// Sets a function that stores mismatches between a program and its operations, and returns
    /// where.
    pub fn when_different(
        self,
        keeper: impl Fn(&Mismatch) -> Option<String> + Send + 'static,
    ) -> NativeEngine {
        NativeEngine { keeper: Some(Box::new(keeper)), ..self }
    }
}

impl Engine for NativeEngine {
    type Tensor = Tensor;
    type Program = Arc<NativeProgram>;

    fn name(&self) -> &str {
        "native"
    }

    fn lowers(&self, operation: &'static Operation) -> bool {
        table::lowering(operation).is_some()
    }

    fn create(&mut self, data: TensorData) -> Result<Tensor, EngineError> {
        Tensor::from_data(data)
    }

    fn read(&mut self, tensor: &Tensor) -> Result<TensorData, EngineError> {
        if tensor.is_contiguous() {
            return Ok(tensor.to_data());
        }
        Ok(tensor.clone().contiguous()?.to_data())
    }

    #[inline]
    fn run(
        &mut self,
        operation: &'static Operation,
        mut operands: Operands<Tensor>,
        attributes: &Attributes,
        output: Meta,
    ) -> Result<Tensor, EngineError> {
        let threads = &mut self.threads;
        match table::lowering(operation) {
            Some(Lowering::Same(kernels)) => {
                let kernel = kernel(operation, kernels, compute_dtype(output.dtype))?;
                elementwise::run(threads, &mut operands, kernel, PARALLEL, output)
            }
            Some(Lowering::Function(kernels)) => {
                let kernel = kernel(operation, kernels, compute_dtype(output.dtype))?;
                elementwise::run(threads, &mut operands, kernel, PARALLEL_FUNCTIONS, output)
            }
            Some(Lowering::Promoted(kernels)) => {
                let kernel = kernel(operation, kernels, binary::promoted(&operands))?;
                elementwise::run(threads, &mut operands, kernel, PARALLEL, output)
            }
            Some(Lowering::Own(run)) => run(threads, operands, attributes, output),
            Some(Lowering::MultiOutput(_)) | None => {
                Err(EngineError::Other(format!("{} has no lowering", operation.name)))
            }
        }
    }

    fn run_several(
        &mut self,
        operation: &'static Operation,
        operands: Operands<Tensor>,
        attributes: &Attributes,
        outputs: &[Meta],
    ) -> Result<Vec<Tensor>, EngineError> {
        match table::lowering(operation) {
            Some(Lowering::MultiOutput(run)) => {
                run(&mut self.threads, operands, attributes, outputs)
            }
            None if operation.facts.result == ResultKind::UserCode => {
                Err(EngineError::Other(format!(
                    "the engine 'native' has no custom operations, as {}\n  hint: use one in Python: GT_BACKEND=numpy, pytorch, jax or module:Class",
                    custom::title(operation, attributes)
                )))
            }
            _ => Err(EngineError::Other(format!("{} has no lowering", operation.name))),
        }
    }

    fn prepare(&mut self, plan: &gt_worker::plan::Plan) -> Result<Arc<NativeProgram>, EngineError> {
        let started = Instant::now();
        let program = NativeProgram::new(plan.clone());
        if let Some(listener) = &self.listener {
            listener(plan, &program, started.elapsed());
        }
        Ok(Arc::new(program))
    }

    fn launch(
        &mut self,
        program: &mut Arc<NativeProgram>,
        inputs: &mut [InputValue<Tensor>],
    ) -> Result<Vec<Tensor>, EngineError> {
        program.launch(self, inputs)
    }

    /// Returns true: each element is computed by the same arithmetic in the same order (see
    /// [`fold::order`] and [`program`]).
    fn is_exact(&self) -> bool {
        true
    }

    fn is_unchecked(&mut self, program: &mut Arc<NativeProgram>) -> bool {
        program.is_unchecked()
    }

    fn judge(&mut self, program: &mut Arc<NativeProgram>, wrong: Option<&str>) {
        if let Some(text) = wrong {
            tracing::warn!("a fused sequence gave {text}; it is run operation by operation");
        }
        // No call that can be paused runs it before it is checked.
        Arc::get_mut(program).expect("nothing else refers to it").judge(wrong.is_none());
    }

    fn report(&mut self, mismatch: &Mismatch) -> Option<String> {
        self.keeper.as_ref()?(mismatch)
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn shared_buffer(&self, tensor: &Tensor) -> Option<SharedBuffer> {
        tensor.shared_buffer()
    }

    fn makes_view_of(&self, tensor: &Tensor, shape: &Shape) -> bool {
        shape::is_view(tensor, shape)
    }

    fn bytes_of_distinct(&self, operands: &[&Tensor], output: Meta) -> u64 {
        let shape = repeats::distinct(operands.iter().copied(), output.shape);
        Meta::new(output.dtype, shape.unwrap_or(output.shape)).bytes() as u64
    }

    fn compact(&mut self, tensor: &Tensor) -> Result<Tensor, EngineError> {
        copy::of_with(&mut self.threads, tensor)
    }

    fn set_budget(&mut self, bytes: Option<u64>) {
        if let Some(bytes) = bytes {
            self.budget.set(bytes);
        }
        budget::enter(bytes.map(|_| self.budget));
    }

    fn release_memory(&mut self) {
        buffer::release_cached();
    }

    fn can_pause(&self) -> bool {
        true
    }

    fn begin<'a>(
        &mut self,
        call: EngineCall<'a, NativeEngine>,
    ) -> Result<Box<dyn PausableCall<Tensor>>, EngineCall<'a, NativeEngine>> {
        self.begin_call(call)
    }

    fn notify_by(&mut self, notify: Notifier) {
        self.calls.notify(notify);
    }

    fn after_fork(&mut self) {
        self.threads.after_fork();
        self.calls.after_fork();
    }
}

#[inline]
fn kernel<'a>(
    operation: &Operation,
    kernels: &'a ByDType,
    dtype: DType,
) -> Result<&'a Kernel, EngineError> {
    match &kernels[dtype as usize] {
        Some(kernel) => Ok(kernel),
        None => Err(EngineError::Other(format!("{} does not take {dtype}", operation.name))),
    }
}
