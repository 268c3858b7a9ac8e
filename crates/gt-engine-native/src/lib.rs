//! GT's own engine: computes every operation on the processor.
//!
//! - [`table`]: from an operation to what computes it; read it first.
//! - [`tensor`] and [`buffer`]: memory, shared by reference, and strided views of it; [`uninit`]:
//!   tensors while they are written; [`budget`]: what may be allocated in a turn.
//! - [`elementwise`]: the one driver of all elementwise operations; [`unary`], [`binary`],
//!   [`ternary`] and [`cast`] (over [`half_floats`]) are its [`kernel`]s, [`element`] and [`math`] what
//!   they compute.
//! - [`via_f64`], [`parts`] and [`complex`]: further kernels; [`axis_rows`]: what goes along one axis;
//!   [`repeats`]: results that repeat elements.
//! - [`reduce`] and [`extreme`] over [`fold`], [`matmul`], [`convolution`], [`pooling`], [`attention`], [`softmax`], [`normalization`], [`shape`] over [`copy`],
//!   [`index`], [`scatter`] and [`rows`], [`create`], [`random`] and [`samplers`], [`fourier`], [`linalg`]: the other families.
//! - [`program`]: many operations as one.
//! - [`simd`] and [`threads`] over [`thread_pool`]: the machine's vectors and processors; [`processor`]: who
//!   runs on which.
//!
//! Matrices are multiplied by the `gemm` crate, the very kernels of burn-flex; all else of
//! burn-flex is left out, as its tensors allocate shape and strides for each operation.
//!
//! An operation writes into its first operand's memory where nothing else refers to it. The
//! engine knows neither clients nor workers' plans; composites it has no lowering for are
//! expanded by the worker.

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
mod half_floats;
mod index;
mod kernel;
mod linalg;
mod masked;
mod math;
mod matmul;
mod normalization;
mod parts;
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

use std::time::{Duration, Instant};

use gt_ir::instruction::Operands;
use gt_ir::ops::custom::{self, CUSTOM};
use gt_ir::{Attributes, DType, Meta, Operation, Shape, TensorData};
use gt_worker::check::Mismatch;
use gt_worker::plan::InputValue;
use gt_worker::{Engine, EngineError, SharedBuffer};

use crate::budget::Budget;
use crate::element::compute_dtype;
use crate::elementwise::{PARALLEL, PARALLEL_FUNCTIONS};
use crate::kernel::{ByDType, Kernel};
pub use crate::program::NativeProgram;
use crate::table::Lowering;
pub use crate::tensor::Tensor;
use crate::threads::Threads;
pub use gt_simd as simd;

/// Told of a plan made ready: the plan, what came of it, and how long that took.
type PrepareListener = Box<dyn Fn(&gt_worker::plan::Plan, &NativeProgram, Duration) + Send>;

/// Keeps what replays a difference, and says where it is.
type MismatchKeeper = Box<dyn Fn(&Mismatch) -> Option<String> + Send>;

/// The native engine.
pub struct NativeEngine {
    threads: Threads,
    started: Instant,
    listener: Option<PrepareListener>,
    keeper: Option<MismatchKeeper>,
    budget: &'static Budget,
}

/// Return what the bits of results depend on: version, processor and the vectors that loops use.
pub fn arithmetic() -> String {
    let (version, arch) = (env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    format!("native {version} on {arch} {:?}", simd::level())
}

impl NativeEngine {
    /// An engine that computes on up to `threads` threads, the caller's among them. The others
    /// start with the first operation that is large enough for them.
    pub fn new(threads: usize) -> NativeEngine {
        // A setting of gemm's for the whole process, which no other code uses: small batches
        // multiply some 5 % faster when the weights are not copied first.
        gemm::set_lhs_packing_threshold_single_thread(32);
        let (threads, started) = (Threads::new(threads), Instant::now());
        NativeEngine { threads, started, listener: None, keeper: None, budget: Budget::new() }
    }

    /// Tells a listener of every plan that is made ready.
    pub fn when_prepared(
        self,
        listener: impl Fn(&gt_worker::plan::Plan, &NativeProgram, Duration) + Send + 'static,
    ) -> NativeEngine {
        NativeEngine { listener: Some(Box::new(listener)), ..self }
    }

    /// Gives what replays it to a keeper, where a program differs from its operations.
    pub fn when_different(
        self,
        keeper: impl Fn(&Mismatch) -> Option<String> + Send + 'static,
    ) -> NativeEngine {
        NativeEngine { keeper: Some(Box::new(keeper)), ..self }
    }
}

impl Engine for NativeEngine {
    type Tensor = Tensor;
    type Program = NativeProgram;

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
            None if *operation == CUSTOM => Err(EngineError::Other(format!(
                "the engine 'native' has no custom operations, as {}\n  hint: use one in Python: GT_BACKEND=numpy, pytorch, jax or module:Class",
                custom::title(operation, attributes)
            ))),
            _ => Err(EngineError::Other(format!("{} has no lowering", operation.name))),
        }
    }

    fn prepare(&mut self, plan: &gt_worker::plan::Plan) -> Result<NativeProgram, EngineError> {
        let started = Instant::now();
        let program = NativeProgram::new(plan.clone());
        if let Some(listener) = &self.listener {
            listener(plan, &program, started.elapsed());
        }
        Ok(program)
    }

    fn launch(
        &mut self,
        program: &mut NativeProgram,
        inputs: &mut [InputValue<Tensor>],
    ) -> Result<Vec<Tensor>, EngineError> {
        program.launch(self, inputs)
    }

    /// See [`fold::order`] and [`program`]: each element is computed by the same arithmetic in the
    /// same order.
    fn is_exact(&self) -> bool {
        true
    }

    fn is_unchecked(&mut self, program: &mut NativeProgram) -> bool {
        program.is_unchecked()
    }

    fn judge(&mut self, program: &mut NativeProgram, wrong: Option<&str>) {
        if let Some(text) = wrong {
            tracing::warn!("a fused sequence gave {text}; it is run operation by operation");
        }
        program.judge(wrong.is_none());
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

    fn after_fork(&mut self) {
        self.threads.after_fork();
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
